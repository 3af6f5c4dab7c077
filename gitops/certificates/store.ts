import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type CertificateFacts,
  checkCertificateFiles,
  readFacts,
} from '../appliers/proxy/certificate-check.ts';
import type { CertificatePaths } from '../appliers/proxy/certificates.ts';
import { syncDirectory, writeDurably } from '../base/durable.ts';
import type { Issued } from '../clients/acme.ts';
import { AcmeError } from '../clients/acme-errors.ts';

const ENDING = '.pem';
/** Of a file that is being written, see `writeDurably`. */
const UNFINISHED = '.tmp';

/**
 * The certificates of names, one file each, for their owner's eyes only: the key and the chain in one file, so that
 * they are replaced together or not at all.
 */
export class CertificateStore {
  readonly #directory: string;
  /** What each is, as far as this process has put or found it there. */
  readonly #known = new Map<string, CertificateFacts>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Before anything is written: what is unfinished now is an earlier process's. */
  async prepare(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const unfinished = (await readdir(this.#directory)).filter((name) => name.endsWith(UNFINISHED));
    await Promise.all(unfinished.map((name) => rm(join(this.#directory, name), { force: true })));
    await Promise.all((await this.#hosts()).map((host) => this.read(host)));
  }

  /** Tells the certificate of a name from the one before it. */
  edition(host: string): string | undefined {
    return this.#known.get(host)?.notBefore.toString();
  }

  paths(host: string): CertificatePaths {
    const path = this.#pathOf(host);
    return { cert: path, key: path };
  }

  /** `null` where there is none that was ever good for this name; it may have ended since. */
  async read(host: string): Promise<CertificateFacts | null> {
    const pem = await readFile(this.#pathOf(host), 'utf8').catch(absent);
    const facts = pem === null ? null : readFacts(pem);
    if (pem === null || facts === null) return null;
    if (!('facts' in checkCertificateFiles({ chain: pem, key: pem, host }, facts.notBefore))) return null;
    this.#known.set(host, facts);
    return facts;
  }

  /** Throws `AcmeError` where what was issued can't be served, and keeps what is there. */
  async write(host: string, { chain, key }: Issued, now: number): Promise<CertificateFacts> {
    const checked = checkCertificateFiles({ chain, key, host }, now);
    if ('fault' in checked)
      throw new AcmeError('unusable', `what the authority issued is no use: ${checked.fault}`);
    await writeDurably(this.#pathOf(host), `${key.trim()}\n${chain.trim()}\n`);
    this.#known.set(host, checked.facts);
    return checked.facts;
  }

  async keepOnly(hosts: ReadonlySet<string>): Promise<void> {
    const others = (await this.#hosts()).filter((host) => !hosts.has(host));
    if (others.length === 0) return;
    for (const host of others) this.#known.delete(host);
    await Promise.all(others.map((host) => rm(this.#pathOf(host), { force: true })));
    await syncDirectory(this.#directory);
  }

  /** Whose certificates are there. One that is just being written isn't yet, and must not be touched. */
  async #hosts(): Promise<string[]> {
    const names = await readdir(this.#directory);
    return names.filter((name) => name.endsWith(ENDING)).map((name) => name.slice(0, -ENDING.length));
  }

  #pathOf(host: string): string {
    return join(this.#directory, `${host}${ENDING}`);
  }
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
