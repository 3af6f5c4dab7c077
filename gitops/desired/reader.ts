import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import { refusedNames } from '../../sites/manifest/own-zones.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import type { SiteFile } from '../../sites/repo/files.ts';
import type { SiteBlob } from '../../sites/repo/listing.ts';
import type { SitesRepo } from '../../sites/repo/sites-repo.ts';
import type { Reason } from '../report/report.ts';
import { appliedManifests } from './applied.ts';
import { claimantsOf } from './claim-age.ts';
import { claims, contestedNames, lostClaims } from './claims.ts';
import {
  ciphertexts,
  copiedSecrets,
  disputedDomains,
  lostDomains,
  registrableDomains,
  unboundCiphertexts,
} from './client-domains.ts';
import type { DesiredSite, DesiredState, OtherHostSite } from './desired-state.ts';
import { readInForce } from './in-force.ts';
import { Policies } from './policies.ts';
import {
  type DesiredStateSettings,
  misplacedId,
  type Reading,
  readSiteFile,
  type UnreadableFile,
  unreadableForm,
} from './reading.ts';

/** Each site's reading, with the blob that was read. */
type Readings = Map<string, { readonly blob: string; readonly reading: Reading }>;

interface Cache {
  readonly readings: Readings;
  /** Several sites claim a name, or several clients a domain. */
  readonly isContested: boolean;
}

interface Loaded extends Cache {
  readonly state: DesiredState;
}

type NamesBySite = ReadonlyMap<string, ReadonlySet<string>>;

/** Things that belong to one client, by the sites of several clients that have them. */
interface Disputed {
  readonly disputed: NamesBySite;
  readonly of: (manifest: Manifest) => ReadonlySet<string>;
  /** How a message names one of them. */
  readonly what: (one: string) => string;
}

/**
 * How many files are parsed and decrypted at once. All are parsed before the first is decrypted: in turn, both take a
 * quarter more CPU.
 */
const MAX_READS = 64;

/** Reads the desired state of this host. Readings are cached by blob id, so a revision costs what it changes. */
export class DesiredStateReader {
  readonly #repo: SitesRepo;
  readonly #settings: DesiredStateSettings;
  readonly #policies: Policies;
  #current: DesiredState | null = null;
  #cache: Cache = { readings: new Map(), isContested: true };
  /** How many times `read` was called, and the newest of these calls that has ended. */
  #calls = 0;
  #ended = 0;
  /** One load per revision, also for concurrent reads: a hundred requests may wait for the same new commit. */
  readonly #loading = new Map<string, Promise<Loaded>>();

  constructor(repo: SitesRepo, settings: DesiredStateSettings) {
    this.#repo = repo;
    this.#settings = settings;
    this.#policies = new Policies(repo);
  }

  /** Throws `SitesRepoError` if the revision can't be read, rather than return an empty desired state. */
  async read(revision: string): Promise<DesiredState> {
    this.#calls += 1;
    const call = this.#calls;
    if (this.#current?.revision === revision) {
      this.#ended = call;
      return this.#current;
    }
    const { state, ...cache } = await this.#loadOnce(revision);
    // If a call ends after a later call has ended, its older revision doesn't become the current one. Otherwise changes
    // would carry the older revision's ordinal, and be refused for objects that have a newer one.
    if (call > this.#ended) {
      this.#ended = call;
      this.#current = state;
      this.#cache = cache;
    }
    return state;
  }

  /** The revision of the latest call of `read` that has ended; `null`: none yet. */
  get revision(): string | null {
    return this.#current?.revision ?? null;
  }

  /**
   * Like `read`, for a desired state that is only shown: the revision doesn't become the current one, and the cache
   * stays as it is.
   */
  async peek(revision: string): Promise<DesiredState> {
    if (this.#current?.revision === revision) return this.#current;
    return (await this.#loadOnce(revision)).state;
  }

  #loadOnce(revision: string): Promise<Loaded> {
    const active = this.#loading.get(revision);
    if (active !== undefined) return active;
    const loading = this.#load(revision).finally(() => this.#loading.delete(revision));
    this.#loading.set(revision, loading);
    return loading;
  }

  async #load(revision: string): Promise<Loaded> {
    const cache = this.#cache;
    const { files, misplaced } = await this.#repo.tree(revision);
    const withPolicy = await this.#policies.at(revision);
    const isChanged = (site: string, blob: string) => cache.readings.get(site)?.blob !== blob;
    const { fresh, unreadable } = await this.#readAll(
      files.filter(({ site, blob }) => isChanged(site, blob)),
    );
    for (const one of misplaced) {
      if (isChanged(one.site, misplacedId(one))) unreadable.push(unreadableForm(one));
    }
    const context = { revision, current: this.#current, repo: this.#repo, settings: this.#settings };
    const inForce = await readInForce(unreadable, context);
    for (const { site, blob } of unreadable) fresh.set(site, { blob, reading: inForce.get(site) ?? null });
    await this.#refuseOwnNames(fresh);
    const readings: Readings = new Map();
    const sites = new Map<string, DesiredSite>();
    const onOtherHosts = new Map<string, OtherHostSite>();
    for (const { site } of [...files, ...misplaced]) {
      const read = fresh.get(site) ?? cache.readings.get(site);
      if (read === undefined) continue;
      readings.set(site, read);
      const { reading } = read;
      if (reading === null) continue;
      if ('here' in reading) sites.set(site, withPolicy(reading.here));
      else onOtherHosts.set(site, reading.onOtherHost);
    }
    // Where no name was contested before, only a changed file can contest one.
    const suspects = cache.isContested ? undefined : new Set(fresh.keys());
    const isContested = await this.#stallContested(sites, suspects, revision);
    return { state: { revision, sites, onOtherHosts }, readings, isContested };
  }

  async #readAll(blobs: readonly SiteBlob[]): Promise<{ fresh: Readings; unreadable: UnreadableFile[] }> {
    const fresh: Readings = new Map();
    const unreadable: UnreadableFile[] = [];
    const readOne = async (file: SiteFile) => {
      const read = await readSiteFile(file, this.#settings);
      if ('reading' in read) fresh.set(file.site, { blob: file.blob, reading: read.reading });
      else unreadable.push(read.unreadable);
    };
    for await (const files of this.#repo.texts(blobs)) {
      for (let start = 0; start < files.length; start += MAX_READS)
        await Promise.all(files.slice(start, start + MAX_READS).map(readOne));
    }
    return { fresh, unreadable };
  }

  /**
   * Stalls sites with names that are the installation's own, as the API refuses them. Names that this host has already
   * applied to a site stay valid, because it may have them from before this rule.
   */
  async #refuseOwnNames(fresh: Readings): Promise<void> {
    const refused = new Map<string, Map<string, string>>();
    for (const { reading } of fresh.values()) {
      if (reading === null || !('here' in reading) || reading.here.manifest?.state !== 'present') continue;
      const names = refusedNames(reading.here.manifest, this.#settings.zones, this.#settings.host);
      if (names.size > 0) refused.set(reading.here.site, names);
    }
    if (refused.size === 0) return;
    const applied = await appliedManifests([...refused.keys()], this.#repo, this.#settings);
    for (const [site, names] of refused) {
      const before = applied.get(site);
      const kept = new Set(before && refusedNames(before, this.#settings.zones, this.#settings.host).keys());
      const message = [...names].find(([name]) => !kept.has(name))?.[1];
      const { blob = '' } = fresh.get(site) ?? {};
      if (message !== undefined)
        fresh.set(site, { blob, reading: { here: stalledByName(site, blob, message) } });
    }
  }

  /**
   * Stalls the sites whose names another site claimed first, or whose domains belong to another client. Returns true if
   * several sites claim a name, or several clients a domain. With `suspects`, checks only what these sites claim.
   */
  async #stallContested(
    sites: Map<string, DesiredSite>,
    suspects: ReadonlySet<string> | undefined,
    revision: string,
  ): Promise<boolean> {
    const live = liveManifests(sites);
    const among = suspects && live.filter(({ site }) => suspects.has(site));
    const names = contestedNames(live, among);
    if (names.size > 0) {
      const claimants = await claimantsOf(live, { names, claimed: claims }, revision, this.#repo);
      for (const { site, name, holder } of lostClaims(claimants)) {
        this.#stall(sites, site, `${name} is held by the site ${holder}, which claimed it first`);
      }
    }
    const domains = disputedDomains(liveManifests(sites), among);
    const ofDomains = { of: registrableDomains, what: (domain: string) => domain };
    if (domains.size > 0) await this.#stallDisputed(sites, { disputed: domains, ...ofDomains }, revision);
    const secrets = disputedDomains(liveManifests(sites), among, unboundCiphertexts);
    const ofSecrets = { of: ciphertexts, what: () => 'an encrypted value that isn’t bound to its site' };
    if (secrets.size > 0) await this.#stallDisputed(sites, { disputed: secrets, ...ofSecrets }, revision);
    const copies = copiedSecrets(liveManifests(sites), among);
    if (copies.size > 0) await this.#stallCopies(sites, copies);
    return names.size > 0 || domains.size > 0 || secrets.size > 0 || copies.size > 0;
  }

  /** Stalls the sites that have copies, unless they were applied with them. `copies`: by site, the site of the original. */
  async #stallCopies(sites: Map<string, DesiredSite>, copies: ReadonlyMap<string, string>): Promise<void> {
    const applied = await appliedManifests([...copies.keys()], this.#repo, this.#settings);
    for (const [site, original] of copies) {
      const before = applied.get(site);
      const now = sites.get(site)?.manifest;
      if (!now || (before && isWithin(ciphertexts(now), ciphertexts(before)))) continue;
      this.#stall(sites, site, `an encrypted value of it is that of the site ${original}, of another client`);
    }
  }

  async #stallDisputed(
    sites: Map<string, DesiredSite>,
    { disputed, of, what }: Disputed,
    revision: string,
  ): Promise<void> {
    const manifests = await appliedManifests([...disputed.keys()], this.#repo, this.#settings);
    const applied = new Map([...manifests].map(([site, manifest]) => [site, of(manifest)]));
    // Applied domains stay valid, so the ages of claims matter only if a site claims a domain that isn't applied yet.
    const isNew = ([site, domains]: [string, ReadonlySet<string>]) =>
      [...domains].some((domain) => !applied.get(site)?.has(domain));
    if (![...disputed].some(isNew)) return;
    const claimed = { names: disputed, claimed: of };
    const aged = await claimantsOf(liveManifests(sites), claimed, revision, this.#repo);
    const claimants = aged.map((claimant) => ({
      ...claimant,
      applied: applied.get(claimant.manifest.site) ?? new Set<string>(),
    }));
    for (const { site, domain, holder } of lostDomains(claimants, disputed)) {
      this.#stall(
        sites,
        site,
        `${what(domain)} belongs to the client of the site ${holder}, which claimed it first`,
      );
    }
  }

  #stall(sites: Map<string, DesiredSite>, site: string, message: string): void {
    const { blob = '' } = sites.get(site) ?? {};
    const before = this.#current?.sites.get(site);
    const isSame = before?.blob === blob && before.stalled?.message === message;
    sites.set(site, isSame ? before : stalledByName(site, blob, message));
  }
}

function stalledByName(site: string, blob: string, message: string): DesiredSite {
  return { site, blob, manifest: null, stalled: { reason: 'NameTaken' satisfies Reason, message } };
}

const isWithin = (part: ReadonlySet<string>, whole: ReadonlySet<string>) =>
  [...part].every((one) => whole.has(one));

function liveManifests(sites: ReadonlyMap<string, DesiredSite>): LoadedManifest[] {
  const live: LoadedManifest[] = [];
  for (const { manifest } of sites.values()) if (manifest?.state === 'present') live.push(manifest);
  return live;
}
