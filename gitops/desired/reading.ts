import { type ParsedManifest, parseManifest } from '../manifest/load.ts';
import type { Manifest } from '../manifest/schema.ts';
import { decryptSecret, Secret } from '../manifest/secrets.ts';
import type { SiteFile } from '../sites-repo/files.ts';
import type { SitesRepo } from '../sites-repo/sites-repo.ts';
import type { DesiredSite, DesiredState, OtherHostSite } from './desired-state.ts';

export interface DesiredStateSettings {
  /** Only manifests that name this host are applied. */
  readonly host: string;
  /** `AGE-SECRET-KEY-1…` of this host. */
  readonly ageIdentity: string;
  /** The last revision at which all of a site was applied here; `null`: none. Default: none for every site. */
  appliedRevision?(site: string): string | null;
}

/** What one file means for this host. */
export type Reading = { readonly here: DesiredSite } | { readonly onOtherHost: OtherHostSite };

/** Where a file is read, for the last valid version of an invalid one. */
interface ReadingContext {
  readonly revision: string;
  /** What was read last; `null`: nothing yet. */
  readonly current: DesiredState | null;
  readonly repo: Pick<SitesRepo, 'versions'>;
  readonly settings: DesiredStateSettings;
}

const NO_SECRET = new Secret('');

export async function toReading(file: SiteFile, context: ReadingContext): Promise<Reading> {
  const parsed = parseManifest(file.text, file.path);
  return parsed.ok
    ? await readValid(file, parsed.manifest, context.settings)
    : await readInvalid(file, parsed, context);
}

async function readValid(
  { site, blob, path }: SiteFile,
  manifest: Manifest,
  { host, ageIdentity }: DesiredStateSettings,
): Promise<Reading> {
  if (manifest.host !== host) {
    const { state, protect } = manifest;
    return { onOtherHost: { host: manifest.host, state, protect } };
  }
  // A tombstone needs no secret, and its host may no longer have the identity.
  if (manifest.state === 'absent') {
    return { here: { site, blob, manifest: { ...manifest, config: NO_SECRET }, stalled: null } };
  }
  try {
    const config = await decryptSecret(ageIdentity, manifest.containerConfig);
    // A copy: the parser's strings are slices that would keep the whole text in memory.
    return { here: { site, blob, manifest: { ...structuredClone(manifest), config }, stalled: null } };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const message = `${path}: containerConfig can't be decrypted on ${host}: ${reason}`;
    return {
      here: { site, blob, manifest: null, stalled: { reason: 'UndecryptableConfig', message } },
    };
  }
}

/** The last valid version of the file stays in force (docs/reconciler.md, rule 3). */
async function readInvalid(
  file: SiteFile,
  parsed: ParsedManifest & { ok: false },
  context: ReadingContext,
): Promise<Reading> {
  const { site, blob, path } = file;
  const message = parsed.problems
    .map((problem) => {
      const line = problem.line === undefined ? '' : `:${problem.line}`;
      return `${path}${line}: ${problem.path && `${problem.path}: `}${problem.message}`;
    })
    .join('; ');
  const stalled = { reason: parsed.reason, message };
  const { current } = context;
  const inForce = current?.sites.get(site)?.manifest ?? null;
  // A version that no pass has read may be valid, and may give the site to another host.
  const since = inForce === null ? undefined : current?.revision;
  const last = await lastValid(file, context, since);
  if (last === null) return { here: { site, blob, manifest: inForce, stalled } };
  const reading = await readValid(file, last, context.settings);
  if (!('here' in reading)) return reading;
  return { here: { ...reading.here, stalled: reading.here.stalled ?? stalled } };
}

async function lastValid(
  { site, path }: SiteFile,
  { repo, revision }: ReadingContext,
  since: string | undefined,
): Promise<Manifest | null> {
  for (const text of (await repo.versions(site, { revision, since })).values()) {
    if (text === null) return null;
    const parsed = parseManifest(text, path);
    if (parsed.ok) return parsed.manifest;
  }
  return null;
}
