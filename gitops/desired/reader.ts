import type { LoadedManifest } from '../manifest/containers.ts';
import { type ParsedManifest, parseManifest } from '../manifest/load.ts';
import type { Manifest } from '../manifest/schema.ts';
import { decryptSecret, Secret } from '../manifest/secrets.ts';
import type { Reason } from '../report/report.ts';
import type { SiteBlob, SiteFile, SitesRepo } from '../sites-repo/sites-repo.ts';
import { type Claimant, claims, contestedNames, lostClaims } from './claims.ts';

/** A site of this host at some revision. */
export interface DesiredSite {
  readonly site: string;
  readonly blob: string;
  /** What to apply: the newest manifest, or the last valid one. `null`: nothing usable, so nothing is touched. */
  readonly manifest: LoadedManifest | null;
  /** Why the newest manifest isn't what is applied. */
  readonly stalled: { readonly reason: Reason; readonly message: string } | null;
}

/** A site that the revision gives to another host. */
export interface OtherHostSite {
  readonly host: string;
  readonly state: Manifest['state'];
  readonly protect: boolean;
}

export interface DesiredState {
  readonly revision: string;
  /** An entry that stays the same object from one revision to the next stands for the same wish. */
  readonly sites: ReadonlyMap<string, DesiredSite>;
  readonly onOtherHosts: ReadonlyMap<string, OtherHostSite>;
}

export interface DesiredStateSettings {
  /** Only manifests that name this host count. */
  readonly host: string;
  /** `AGE-SECRET-KEY-1…` of this host. */
  readonly ageIdentity: string;
}

/** What one blob says. */
type Reading = { readonly here: DesiredSite } | { readonly onOtherHosts: OtherHostSite };

/** By site, and of which blob. */
type Readings = Map<string, { readonly blob: string; readonly reading: Reading }>;

interface Known {
  readonly readings: Readings;
  /** Two sites claim one thing. */
  readonly contested: boolean;
}

interface Loaded extends Known {
  readonly state: DesiredState;
}

const NO_SECRET = new Secret('');
/** Decryptions under way at once. */
const AT_ONCE = 64;

/** Reads what git asks of this host. What a blob says is kept by its id, so that a pass costs what changed. */
export class DesiredStateReader {
  readonly #repo: SitesRepo;
  readonly #settings: DesiredStateSettings;
  #current: DesiredState | null = null;
  #known: Known = { readings: new Map(), contested: true };
  /** Who asks for one revision at the same time shares the work: a hundred requests wait for the same new commit. */
  readonly #loading = new Map<string, Promise<Loaded>>();

  constructor(repo: SitesRepo, settings: DesiredStateSettings) {
    this.#repo = repo;
    this.#settings = settings;
  }

  /** Throws `SitesRepoError` where the revision can't be read: not knowing is never an empty desired state. */
  async read(revision: string): Promise<DesiredState> {
    if (this.#current?.revision === revision) return this.#current;
    const { state, ...known } = await this.#loadOnce(revision);
    this.#current = state;
    this.#known = known;
    return state;
  }

  /** The same for a revision that isn't going to be applied: what `read` keeps stays as it is. */
  async peek(revision: string): Promise<DesiredState> {
    if (this.#current?.revision === revision) return this.#current;
    return (await this.#loadOnce(revision)).state;
  }

  #loadOnce(revision: string): Promise<Loaded> {
    const under = this.#loading.get(revision);
    if (under !== undefined) return under;
    const loading = this.#load(revision).finally(() => this.#loading.delete(revision));
    this.#loading.set(revision, loading);
    return loading;
  }

  async #load(revision: string): Promise<Loaded> {
    const known = this.#known;
    const listed = await this.#repo.list(revision);
    const unread = listed.filter(({ site, blob }) => known.readings.get(site)?.blob !== blob);
    const fresh = await this.#readAll(unread, revision);
    const readings: Readings = new Map();
    const sites = new Map<string, DesiredSite>();
    const onOtherHosts = new Map<string, OtherHostSite>();
    for (const { site } of listed) {
      const read = fresh.get(site) ?? known.readings.get(site);
      if (read === undefined) continue;
      readings.set(site, read);
      const { reading } = read;
      if ('here' in reading) sites.set(site, reading.here);
      else onOtherHosts.set(site, reading.onOtherHosts);
    }
    // Where nothing was contested before, only what was read anew can be.
    const suspects = known.contested ? undefined : new Set(fresh.keys());
    const contested = await this.#stallContested(sites, suspects, revision);
    return { state: { revision, sites: sites, onOtherHosts: onOtherHosts }, readings, contested };
  }

  async #readAll(blobs: readonly SiteBlob[], revision: string): Promise<Readings> {
    const readings: Readings = new Map();
    for await (const files of this.#repo.texts(blobs)) {
      for (let start = 0; start < files.length; start += AT_ONCE) {
        const some = files.slice(start, start + AT_ONCE).map(async (file) => {
          readings.set(file.site, { blob: file.blob, reading: await this.#reading(file, revision) });
        });
        await Promise.all(some);
      }
    }
    return readings;
  }

  async #reading(file: SiteFile, revision: string): Promise<Reading> {
    const result = parseManifest(file.text, file.path);
    return result.ok ? await this.#valid(file, result.manifest) : await this.#broken(file, result, revision);
  }

  async #valid(file: SiteFile, manifest: Manifest): Promise<Reading> {
    const { host, ageIdentity } = this.#settings;
    if (manifest.host !== host) {
      const { state, protect } = manifest;
      return { onOtherHosts: { host: manifest.host, state, protect } };
    }
    const { site, blob } = file;
    // A tombstone needs no secret, and its host may no longer hold the identity.
    if (manifest.state === 'absent') {
      return { here: { site, blob, manifest: { ...manifest, config: NO_SECRET }, stalled: null } };
    }
    try {
      const config = await decryptSecret(ageIdentity, manifest.containerConfig);
      // Copied, since what the parser cut out of the text would keep the whole of it in memory.
      return { here: { site, blob, manifest: { ...structuredClone(manifest), config }, stalled: null } };
    } catch (error) {
      const message = `${file.path}: containerConfig can't be decrypted on ${host}: ${messageOf(error)}`;
      return {
        here: { site, blob, manifest: null, stalled: { reason: 'UndecryptableConfig', message } },
      };
    }
  }

  /** A bad manifest is not an absent one: the last valid version of the file stays what is applied. */
  async #broken(file: SiteFile, result: ParsedManifest & { ok: false }, revision: string): Promise<Reading> {
    const message = result.problems
      .map(
        ({ path, line, message }) =>
          `${file.path}${line === undefined ? '' : `:${line}`}: ${path && `${path}: `}${message}`,
      )
      .join('; ');
    const stalled = { reason: result.reason, message };
    const { site, blob } = file;
    const inForce = this.#current?.sites.get(site)?.manifest ?? null;
    // Another host may have read a version that came since, and have the site by now.
    const since = inForce === null ? undefined : this.#current?.revision;
    const last = await this.#lastValid(file, revision, since);
    if (last === null) return { here: { site, blob, manifest: inForce, stalled } };
    const reading = await this.#valid(file, last);
    return 'here' in reading
      ? { here: { ...reading.here, stalled: reading.here.stalled ?? stalled } }
      : reading;
  }

  async #lastValid({ site, path }: SiteFile, revision: string, since?: string): Promise<Manifest | null> {
    for (const text of (await this.#repo.versions(site, { revision, since })).values()) {
      if (text === null) return null;
      const result = parseManifest(text, path);
      if (result.ok) return result.manifest;
    }
    return null;
  }

  /** Since when the site has claimed all of `names`, on the branch itself and in what was merged into it; see `Claimant`. */
  async #claimingSince(
    site: string,
    names: ReadonlySet<string>,
    revision: string,
  ): Promise<Claimant['since']> {
    const place = (branchOnly: boolean) => this.#firstClaim(site, names, revision, branchOnly);
    return await Promise.all([place(true), place(false)]);
  }

  /** The place in history of the first commit of the unbroken run in which the site claims all of `names`. */
  async #firstClaim(site: string, names: ReadonlySet<string>, revision: string, branchOnly: boolean) {
    let first = revision;
    for (const [older, text] of await this.#repo.versions(site, { revision, branchOnly })) {
      if (text === null) break;
      const parsed = parseManifest(text, `${site}.yaml`);
      // A version that can't be read neither claims nor gives up anything.
      if (!parsed.ok) continue;
      if (parsed.manifest.state === 'absent') break;
      const claimed = claims(parsed.manifest);
      if ([...names].some((name) => !claimed.includes(name))) break;
      first = older;
    }
    return await this.#repo.depth(first);
  }

  /**
   * Replaces the entries of sites that claim what an older one has; true where there are any. `suspects`: one of these
   * is party to whatever is contested.
   */
  async #stallContested(
    sites: Map<string, DesiredSite>,
    suspects: ReadonlySet<string> | undefined,
    revision: string,
  ): Promise<boolean> {
    const live: LoadedManifest[] = [];
    for (const { manifest } of sites.values()) if (manifest?.state === 'present') live.push(manifest);
    const claiming = contestedNames(live, suspects && live.filter(({ site }) => suspects.has(site)));
    if (claiming.size === 0) return false;
    const claimants: Claimant[] = await Promise.all(
      live
        .filter(({ site }) => claiming.has(site))
        .map(async (manifest) => ({
          manifest,
          since: await this.#claimingSince(manifest.site, claiming.get(manifest.site) ?? new Set(), revision),
        })),
    );
    for (const { site, name, holder } of lostClaims(claimants)) {
      const message = `${name} is held by the site ${holder}, which claimed it first`;
      const { blob = '' } = sites.get(site) ?? {};
      const before = this.#current?.sites.get(site);
      const same = before?.blob === blob && before.stalled?.message === message;
      const stalled = { reason: 'NameTaken', message } as const;
      sites.set(site, same ? before : { site, blob, manifest: null, stalled });
    }
    return true;
  }
}

/** What a revision asks of a site, here or of another host; the same object as long as it is the same wish. */
export function desiredFor({ sites, onOtherHosts }: DesiredState, site: string) {
  return sites.get(site) ?? onOtherHosts.get(site);
}

/** Sites of which the two revisions ask different things. */
export function changedSites(before: DesiredState, after: DesiredState): string[] {
  if (before === after) return [];
  const sites: string[] = [];
  for (const [site, entry] of after.sites) if (before.sites.get(site) !== entry) sites.push(site);
  for (const site of before.sites.keys()) if (!after.sites.has(site)) sites.push(site);
  return sites;
}

const HOLDERS = new WeakMap<DesiredState, ReadonlyMap<string, string>>();

/** By name, port or token the site that has it; made once a revision, and only where somebody asks. */
export function holdersOf(state: DesiredState): ReadonlyMap<string, string> {
  const known = HOLDERS.get(state);
  if (known !== undefined) return known;
  const holders = new Map<string, string>();
  for (const { site, manifest } of state.sites.values()) {
    if (manifest?.state === 'present') for (const name of claims(manifest)) holders.set(name, site);
  }
  HOLDERS.set(state, holders);
  return holders;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
