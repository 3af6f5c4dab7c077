import type { Manifest } from '../../sites/manifest/schema.ts';
import type { LastReadable } from '../../sites/repo/last-readable.ts';
import type { SitesRepo } from '../../sites/repo/sites-repo.ts';
import { appliedManifests } from './applied.ts';
import type { DesiredState } from './desired-state.ts';
import { type DesiredStateSettings, type Reading, readValid, type UnreadableFile } from './reading.ts';

/** What `readInForce` needs besides the files. */
interface ReadingContext {
  readonly revision: string;
  /** What was read last; `null`: nothing yet. */
  readonly current: DesiredState | null;
  readonly repo: Pick<SitesRepo, 'lastReadable' | 'readEach'>;
  readonly settings: DesiredStateSettings;
}

/**
 * By site, what stays in force while its file can't be read (docs/reconciler.md, rule 3). Starts few git processes for
 * any number of files: one commit may break thousands of manifests, and other sites must not wait.
 */
export async function readInForce(
  files: readonly UnreadableFile[],
  context: ReadingContext,
): Promise<Map<string, Reading>> {
  const { revision, current, repo } = context;
  const inForce = (site: string) => current?.sites.get(site)?.manifest ?? null;
  const sites = files.map(({ site }) => site);
  const invalid = new Map(files.map(({ site, blob }) => [site, blob]));
  // Since the last pass there may have been a valid version, even one for another host.
  const [newer, all] = await Promise.all([
    repo.lastReadable(
      sites.filter((site) => inForce(site) !== null),
      { revision, invalid, since: current?.revision },
    ),
    repo.lastReadable(
      sites.filter((site) => inForce(site) === null),
      { revision, invalid },
    ),
  ]);
  const found = (site: string) => newer.get(site) ?? all.get(site);
  const read = async (file: UnreadableFile, last: Manifest | null) =>
    await toReading(file, { last, gone: found(file.site)?.gone?.gone ?? null }, context);
  const readings = new Map<string, Reading>();
  await Promise.all(
    files.map(async (file) => {
      readings.set(file.site, await read(file, found(file.site)?.manifest ?? null));
    }),
  );
  // A rewritten history may no longer have a valid version, and the last one may be as unusable as the newest.
  const isUnknown = ({ site }: UnreadableFile) => {
    const reading = readings.get(site) ?? null;
    return reading === null ? !found(site)?.manifest : 'here' in reading && reading.here.manifest === null;
  };
  const unknown = files.filter(isUnknown);
  const applied = await appliedManifests(
    unknown.map(({ site }) => site),
    repo,
    context.settings,
  );
  for (const file of unknown) {
    const last = applied.get(file.site);
    if (last !== undefined) readings.set(file.site, await read(file, last));
  }
  return readings;
}

/** What git knows of a file that can't be read. */
interface Known {
  readonly last: Manifest | null;
  readonly gone: NonNullable<LastReadable['gone']>['gone'];
}

async function toReading(
  file: UnreadableFile,
  { last, gone }: Known,
  { current, settings }: ReadingContext,
): Promise<Reading> {
  const { site, blob, stalled, isHere, elsewhere } = file;
  const inForce = current?.sites.get(site)?.manifest ?? null;
  if (elsewhere !== null && (last ?? inForce) === null) return null;
  if (elsewhere !== null && gone !== null) {
    // The site was removed, and another commit added a file with its name at another path, for example a backup. Such
    // a file never creates the site.
    const isMoved = gone.movedTo !== null && (inForce !== null || gone.movedTo === elsewhere);
    if (!isMoved) return null;
  }
  if (last === null) return { here: { site, blob, manifest: inForce, stalled } };
  const reading = await readValid(file, last, settings);
  if (reading === null || !('here' in reading)) {
    return isHere ? { here: { site, blob, manifest: inForce, stalled } } : reading;
  }
  return { here: { ...reading.here, manifest: reading.here.manifest ?? inForce, stalled } };
}
