import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory, writeDurably } from '../../base/durable.ts';
import { fileStem } from '../../base/file-stem.ts';
import {
  type CertificateFacts,
  checkCertificateFiles,
  readFacts,
} from '../../sites/manifest/certificate-check.ts';
import type { CertificatePaths } from '../appliers/proxy/certificates.ts';
import type { Issued } from '../clients/acme.ts';
import { AcmeError } from '../clients/acme-errors.ts';

const ENDING = '.pem';
/** Ending of a file that is being written, see `writeDurably`. */
const UNFINISHED = '.tmp';

/**
 * The certificates of names, one file each, readable by its owner only. A file holds the key and the chain, so they are
 * replaced together or not at all.
 */
export class CertificateStore {
  readonly #directory: string;
  /** What is known of the certificates that this process has read or written. */
  readonly #known = new Map<string, CertificateFacts>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Removes unfinished files of an earlier process, and reads the rest. Call it before any write. */
  async prepare(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const unfinished = (await readdir(this.#directory)).filter((name) => name.endsWith(UNFINISHED));
    await Promise.all(unfinished.map((name) => rm(join(this.#directory, name), { force: true })));
    await Promise.all((await this.#hosts()).map((host) => this.read(host)));
  }

  /** Differs for each certificate of a name; `undefined`: this process knows none. */
  edition(host: string): string | undefined {
    return this.#known.get(host)?.notBefore.toString();
  }

  paths(host: string): CertificatePaths {
    const path = this.#pathOf(host);
    return { cert: path, key: path };
  }

  /** Reads the name's certificate, expired or not; `null` if there is none that was ever valid for the name. */
  async read(host: string): Promise<CertificateFacts | null> {
    const pem = await readFile(this.#pathOf(host), 'utf8').catch(nullIfMissing);
    const facts = pem === null ? null : readFacts(pem);
    if (pem === null || facts === null) return null;
    if (!('facts' in checkCertificateFiles({ chain: pem, key: pem, host }, facts.notBefore))) return null;
    this.#known.set(host, facts);
    return facts;
  }

  /** Throws `AcmeError` if the issued certificate can't be served, and keeps the existing one. */
  async write(host: string, { chain, key }: Issued, now: number): Promise<CertificateFacts> {
    const checked = checkCertificateFiles({ chain, key, host }, now);
    if ('fault' in checked)
      throw new AcmeError('unusable', `the issued certificate can’t be used: ${checked.fault}`);
    await writeDurably(this.#pathOf(host), `${key.trim()}\n${chain.trim()}\n`);
    this.#known.set(host, checked.facts);
    return checked.facts;
  }

  async keepOnly(hosts: ReadonlySet<string>): Promise<void> {
    const kept = new Set([...hosts].map(fileStem));
    const others = (await this.#hosts()).filter((stem) => !kept.has(stem));
    if (others.length === 0) return;
    for (const host of others) this.#known.delete(host);
    await Promise.all(others.map((host) => rm(this.#pathOf(host), { force: true })));
    await syncDirectory(this.#directory);
  }

  /** File stems of the hosts with a certificate. Files that are being written don't count and must not be touched. */
  async #hosts(): Promise<string[]> {
    const names = await readdir(this.#directory);
    return names.filter((name) => name.endsWith(ENDING)).map((name) => name.slice(0, -ENDING.length));
  }

  #pathOf(host: string): string {
    return join(this.#directory, `${fileStem(host)}${ENDING}`);
  }
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
