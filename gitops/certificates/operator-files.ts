import { join } from 'node:path';
import {
  type CertificateFacts,
  type Checked,
  checkCertificateFiles,
  readFacts,
} from '../appliers/proxy/certificate-check.ts';
import type { CertificatePaths, CertificateSource, ServedName } from '../appliers/proxy/certificates.ts';
import { TerminalError } from '../base/errors.ts';
import type { DesiredState } from '../desired/desired-state.ts';
import type { CertificateStatus } from '../report/report.ts';
import type { Certificates } from './contract.ts';
import { KeptPairs, type Pair } from './kept-pairs.ts';
import { type WantedName, wantedNames } from './names.ts';
import { OperatorPairs, stemsOf } from './operator-pairs.ts';
import { judgeFiles, WITHOUT } from './policy.ts';
import { fileStatus } from './status.ts';

export interface OperatorFilesOptions {
  /** The operator's own; only read. */
  readonly directory: string;
  /** Where copies of what was found good are kept, and served from. */
  readonly keptIn: string;
  readonly now?: () => number;
}

/** What the files of a name come to. */
interface Look {
  /** The copy that is served; `null`: nothing ever was any good. */
  readonly path: string | null;
  readonly certificate: CertificateFacts | null;
  /** What is wrong with the files as they are, for the person who puts them there; `null`: nothing. */
  readonly fault: string | null;
  /** None of the files is any use, and a copy of earlier ones is served on. */
  readonly isOutdated: boolean;
}

type Good = Extract<Checked, { facts: CertificateFacts }>;

/**
 * `tls: files`: an operator's own files, for the exact name (`<host>.pem`, `<host>.key`), else for a wildcard of its
 * parent (`_.<parent>.pem`, `_.<parent>.key`). A pair is checked (see `checkCertificate`) and copied before it is
 * served, so that files which go bad where they are cost nobody anything: the last good copy is served on, and the
 * name's state says what is wrong. Each is looked at whenever the proxy is.
 */
export class OperatorFiles implements CertificateSource, Certificates {
  readonly #pairs: OperatorPairs;
  readonly #kept: KeptPairs;
  readonly #now: () => number;
  /** What the latest look at each name found. */
  readonly #looks = new Map<string, Look>();
  /** What was found good, by host: a check takes half a millisecond, and every look asks for all. */
  readonly #good = new Map<string, Good & { readonly copy: string }>();
  /** Before the first look at git there is no telling what may go. */
  #desired: DesiredState | null = null;
  #names: ReadonlyMap<string, WantedName> = new Map();
  #bySite: ReadonlyMap<string, readonly WantedName[]> = new Map();
  #onChange: (site: string) => void = () => undefined;

  private constructor(pairs: OperatorPairs, kept: KeptPairs, now: () => number) {
    this.#pairs = pairs;
    this.#kept = kept;
    this.#now = now;
  }

  static async open({ directory, keptIn, now = Date.now }: OperatorFilesOptions): Promise<OperatorFiles> {
    const kept = new KeptPairs(keptIn);
    await kept.prepare();
    return new OperatorFiles(new OperatorPairs(directory), kept, now);
  }

  start(onChange: (site: string) => void): void {
    this.#onChange = onChange;
  }

  async stop(): Promise<void> {}

  follow(desired: DesiredState): void {
    if (this.#desired === desired) return;
    this.#desired = desired;
    const { names, unknown } = wantedNames(desired, 'files');
    const before = [...this.#names].filter(([, { site }]) => unknown.has(site));
    this.#names = new Map([...before, ...names]);
    this.#bySite = Map.groupBy(this.#names.values(), ({ site }) => site);
  }

  uncertified(): ReadonlyMap<string, string> {
    const sites = new Map<string, string>();
    for (const { host, site, own } of this.#names.values()) {
      const look = this.#looks.get(host);
      if (!own || look === undefined) continue;
      const { state, reason } = judgeFiles(look, this.#now());
      if (WITHOUT.has(state)) sites.set(site, `${host}: ${state}: ${reason}`);
    }
    return sites;
  }

  statuses(site: string): CertificateStatus[] {
    return (this.#bySite.get(site) ?? []).flatMap(({ host }) => {
      const look = this.#looks.get(host);
      return look === undefined ? [] : [fileStatus(host, judgeFiles(look, this.#now()), look.certificate)];
    });
  }

  async pathsFor(host: string): Promise<CertificatePaths> {
    const { path, fault } = await this.#look(host);
    if (path === null) throw new TerminalError(`no certificate for ${host}: ${fault}`);
    return { cert: path, key: path };
  }

  async isLatest(host: string, { cert }: CertificatePaths): Promise<boolean> {
    return (await this.#look(host)).path === cert;
  }

  async retain(served: readonly ServedName[]): Promise<void> {
    if (this.#desired === null) return;
    const hosts = new Set([...this.#names.keys(), ...served.map(({ host }) => host)]);
    for (const host of this.#looks.keys()) {
      if (hosts.has(host)) continue;
      this.#looks.delete(host);
      this.#good.delete(host);
    }
    const inUse = served.flatMap(({ files }) => files?.cert ?? []);
    await this.#kept.keepOnly(() => ({
      paths: new Set([...inUse, ...[...this.#looks.values()].flatMap(({ path }) => path ?? [])]),
      // Of a name that wasn't looked at yet, any may be the one.
      stems: new Set([...hosts].filter((host) => !this.#looks.has(host)).flatMap(stemsOf)),
    }));
  }

  async #look(host: string): Promise<Look> {
    const { pair, ...look } = await this.#find(host);
    const before = this.#looks.get(host);
    // Before the copy is made, so that no tidying in between takes it for nobody's.
    this.#looks.set(host, look);
    if (look.path !== null && pair !== null) await this.#kept.keep(look.path, pair);
    const site = this.#names.get(host)?.site;
    if (before !== undefined && site !== undefined && !isSame(before, look)) this.#onChange(site);
    return look;
  }

  /** `pair`: what the copy is made of; `null` where there is no other. */
  async #find(host: string): Promise<Look & { readonly pair: Pair | null }> {
    const stems = stemsOf(host);
    const faults: string[] = [];
    for (const stem of stems) {
      const found = await this.#pairs.read(stem);
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
      faults.push(`${join(this.#pairs.directory, `${stem}.pem`)}: ${checked.fault}`);
    }
    const wanted = stems.map((stem) => `${stem}.pem and ${stem}.key`).join(', or ');
    const fault = faults.join('; ') || `put ${wanted} into ${this.#pairs.directory}`;
    const last = await this.#lastGood(host);
    const { path, certificate } = last;
    return { path, certificate, pair: null, fault, isOutdated: path !== null };
  }

  /** The copy that was served so far; after a restart, the newest that the name can be served with. */
  async #lastGood(host: string): Promise<Pick<Look, 'path' | 'certificate'>> {
    const before = this.#looks.get(host);
    if (before?.path != null && (await this.#kept.has(before.path))) return before;
    const newest = await this.#kept.newest(stemsOf(host), (pem) => onceGood(pem, host));
    return { path: newest?.path ?? null, certificate: newest?.judged ?? null };
  }

  #check(host: string, copy: string, pair: Pair): Checked {
    const now = this.#now();
    const before = this.#good.get(host);
    if (before?.copy === copy && now < before.until) return before;
    const checked = checkCertificateFiles({ ...pair, host }, now);
    if ('facts' in checked) this.#good.set(host, { ...checked, copy });
    return checked;
  }
}

/** A copy was good when it was made; one that has ended since is better than nothing. */
function onceGood(pem: string, host: string): CertificateFacts | null {
  const facts = readFacts(pem);
  if (facts === null) return null;
  const checked = checkCertificateFiles({ chain: pem, key: pem, host }, facts.notBefore);
  return 'facts' in checked ? checked.facts : null;
}

function isSame(one: Look, other: Look): boolean {
  return one.path === other.path && one.fault === other.fault;
}
