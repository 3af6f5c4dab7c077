import { join } from 'node:path';
import { TerminalError } from '../../base/errors.ts';
import {
  type CertificateFacts,
  type Checked,
  checkCertificateFiles,
  readFacts,
} from '../../sites/manifest/certificate-check.ts';
import {
  type CertificatePaths,
  type CertificateSource,
  filesRemedy,
  type ServedName,
  UPLOAD,
} from '../appliers/proxy/certificates.ts';
import type { DesiredState } from '../desired/desired-state.ts';
import type { CertificateStatus } from '../report/report.ts';
import type { Certificates } from './contract.ts';
import { KeptPairs, type Pair } from './kept-pairs.ts';
import { type WantedName, wantedNames } from './names.ts';
import { OperatorPairs, stemsOf } from './operator-pairs.ts';
import { judgeFiles, WITHOUT } from './policy.ts';
import { fileStatus } from './status.ts';

interface OperatorFilesOptions {
  /** `uploaded`: the pairs are in the manifests. Default: `files`. */
  readonly mode?: 'files' | 'uploaded';
  /** The operator's folder, never written. */
  readonly directory: string;
  /** The folder of the copies that are served. */
  readonly keptIn: string;
  /** Whether this host could order certificates instead (`tls: acme`). */
  readonly hasAuthority: boolean;
  readonly now?: () => number;
}

/** The result of a check of a name's files. */
interface FilesCheck {
  /** The copy that is served; `null` if no files were ever valid. */
  readonly path: string | null;
  readonly certificate: CertificateFacts | null;
  /** What is wrong with the current files, for the operator; `null` if nothing is. */
  readonly fault: string | null;
  /** The current files are invalid, and a copy of earlier ones is served. */
  readonly isOutdated: boolean;
}

type Valid = Extract<Checked, { facts: CertificateFacts }>;

/**
 * `tls: files`: certificates from an operator's files, for the exact name (`<host>.pem`, `<host>.key`) or for the
 * wildcard of its parent (`_.<parent>.pem`, `_.<parent>.key`). A valid pair (see `checkCertificateFiles`) is copied,
 * and the copy is served. If the files become invalid, the last valid copy stays in use and the name's state says what
 * is wrong. The files are checked whenever the proxy is observed. `tls: uploaded` is the same with the pair of a
 * manifest instead of files.
 */
export class OperatorFiles implements CertificateSource, Certificates {
  readonly #mode: 'files' | 'uploaded';
  readonly #pairs: OperatorPairs;
  readonly #kept: KeptPairs;
  readonly #hasAuthority: boolean;
  readonly #now: () => number;
  /** The latest check of each name. */
  readonly #checks = new Map<string, FilesCheck>();
  /** Valid pairs by host: a check takes half a millisecond, and every pass checks all names. */
  readonly #valid = new Map<string, Valid & { readonly copy: string }>();
  /** `null` until git was read: before that no copy may be removed. */
  #desired: DesiredState | null = null;
  #names: ReadonlyMap<string, WantedName> = new Map();
  #bySite: ReadonlyMap<string, readonly WantedName[]> = new Map();
  #onChange: (site: string) => void = () => undefined;

  private constructor({
    mode = 'files',
    directory,
    keptIn,
    hasAuthority,
    now = Date.now,
  }: OperatorFilesOptions) {
    this.#mode = mode;
    this.#pairs = new OperatorPairs(directory);
    this.#kept = new KeptPairs(keptIn);
    this.#hasAuthority = hasAuthority;
    this.#now = now;
  }

  static async open(options: OperatorFilesOptions): Promise<OperatorFiles> {
    const files = new OperatorFiles(options);
    await files.#kept.prepare();
    return files;
  }

  start(onChange: (site: string) => void): void {
    this.#onChange = onChange;
  }

  async stop(): Promise<void> {}

  follow(desired: DesiredState): void {
    if (this.#desired === desired) return;
    this.#desired = desired;
    const { names, unknown } = wantedNames(desired, this.#mode);
    const before = [...this.#names].filter(([, { site }]) => unknown.has(site));
    this.#names = new Map([...before, ...names]);
    this.#bySite = Map.groupBy(this.#names.values(), ({ site }) => site);
  }

  uncertified(): ReadonlyMap<string, string> {
    const sites = new Map<string, string>();
    for (const { host, site, own } of this.#names.values()) {
      const check = this.#checks.get(host);
      if (!own || check === undefined) continue;
      const { state, reason } = judgeFiles(check, this.#now());
      if (WITHOUT.has(state)) sites.set(site, `${host}: ${state}: ${reason}`);
    }
    return sites;
  }

  statuses(site: string): CertificateStatus[] {
    return (this.#bySite.get(site) ?? []).flatMap(({ host }) => {
      const check = this.#checks.get(host);
      return check === undefined ? [] : [fileStatus(host, judgeFiles(check, this.#now()), check.certificate)];
    });
  }

  async pathsFor(host: string): Promise<CertificatePaths> {
    const { path, fault } = await this.#checkName(host);
    if (path === null) throw new TerminalError(`no certificate for ${host}: ${fault}`);
    return { cert: path, key: path };
  }

  async isLatest(host: string, { cert }: CertificatePaths): Promise<boolean> {
    return (await this.#checkName(host)).path === cert;
  }

  async retain(served: readonly ServedName[]): Promise<void> {
    if (this.#desired === null) return;
    const hosts = new Set([...this.#names.keys(), ...served.map(({ host }) => host)]);
    for (const host of this.#checks.keys()) {
      if (hosts.has(host)) continue;
      this.#checks.delete(host);
      this.#valid.delete(host);
    }
    const inUse = served.flatMap(({ files }) => files?.cert ?? []);
    await this.#kept.keepOnly(() => ({
      paths: new Set([...inUse, ...[...this.#checks.values()].flatMap(({ path }) => path ?? [])]),
      // A name that wasn't checked yet may need any copy of its stems.
      stems: new Set(
        [...hosts].filter((host) => !this.#checks.has(host)).flatMap((host) => this.#stemsOf(host)),
      ),
    }));
  }

  async #checkName(host: string): Promise<FilesCheck> {
    const { pair, ...check } = await this.#find(host);
    const before = this.#checks.get(host);
    // Set before the copy is written, so that `retain` keeps the copy.
    this.#checks.set(host, check);
    if (check.path !== null && pair !== null) await this.#kept.keep(check.path, pair);
    const site = this.#names.get(host)?.site;
    if (before !== undefined && site !== undefined && !isSame(before, check)) this.#onChange(site);
    return check;
  }

  /** `pair` is the content of the valid files, to be copied; `null` if no files are valid. */
  async #find(host: string): Promise<FilesCheck & { readonly pair: Pair | null }> {
    const stems = this.#stemsOf(host);
    const faults: string[] = [];
    for (const stem of stems) {
      const found = this.#mode === 'uploaded' ? this.#uploadedFor(host) : await this.#pairs.read(stem);
      if (found === null) continue;
      if ('fault' in found) {
        faults.push(found.fault);
        continue;
      }
      const { pair } = found;
      const path = this.#kept.pathOf(stem, pair);
      const checked = this.#check(host, path, pair);
      if ('facts' in checked) {
        return {
          path,
          pair,
          certificate: checked.facts,
          fault: faults.join('; ') || null,
          isOutdated: false,
        };
      }
      faults.push(
        `${this.#mode === 'uploaded' ? 'tls.certificate' : join(this.#pairs.directory, `${stem}.pem`)}: ${checked.fault}`,
      );
    }
    const wanted = stems.map((stem) => `${stem}.pem and ${stem}.key`).join(', or ');
    const put = `put ${wanted} into ${this.#pairs.directory}`;
    const fault =
      faults.join('; ') || (this.#mode === 'uploaded' ? UPLOAD : filesRemedy(put, this.#hasAuthority));
    const last = await this.#lastValid(host);
    const { path, certificate } = last;
    return { path, certificate, pair: null, fault, isOutdated: path !== null };
  }

  /** The copy in use so far; after a restart, the newest copy that is valid for the name. */
  async #lastValid(host: string): Promise<Pick<FilesCheck, 'path' | 'certificate'>> {
    const before = this.#checks.get(host);
    if (before?.path != null && (await this.#kept.has(before.path))) return before;
    const newest = await this.#kept.newest(this.#stemsOf(host), (pem) => onceValid(pem, host));
    return { path: newest?.path ?? null, certificate: newest?.result ?? null };
  }

  #stemsOf(host: string): readonly string[] {
    return this.#mode === 'uploaded' ? [host] : stemsOf(host);
  }

  /** `null` before git was read. */
  #uploadedFor(host: string): { readonly pair: Pair } | null {
    const site = this.#names.get(host)?.site;
    const manifest = site === undefined ? undefined : this.#desired?.sites.get(site)?.manifest;
    if (manifest?.tls.certificate === undefined || manifest.tlsKey === undefined) return null;
    return { pair: { chain: manifest.tls.certificate, key: manifest.tlsKey.reveal() } };
  }

  #check(host: string, copy: string, pair: Pair): Checked {
    const now = this.#now();
    const before = this.#valid.get(host);
    if (before?.copy === copy && now < before.until) return before;
    const checked = checkCertificateFiles({ ...pair, host }, now);
    if ('facts' in checked) this.#valid.set(host, { ...checked, copy });
    return checked;
  }
}

/** A copy was valid when it was written. An expired one is better than none. */
function onceValid(pem: string, host: string): CertificateFacts | null {
  const facts = readFacts(pem);
  if (facts === null) return null;
  const checked = checkCertificateFiles({ chain: pem, key: pem, host }, facts.notBefore);
  return 'facts' in checked ? checked.facts : null;
}

function isSame(one: FilesCheck, other: FilesCheck): boolean {
  return one.path === other.path && one.fault === other.fault;
}
