import { access, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { optional } from '../../base/runtime/optional.ts';

/**
 * Unpacks PGlite's empty cluster under `dir` unless there is one. Takes a third of a second; `initdb` takes several
 * seconds. A rename puts the cluster in place as a whole, so that the next start works after a kill at any moment.
 */
export async function ensureCluster(dir: string): Promise<void> {
  const present = await access(join(dir, 'PG_VERSION')).then(
    () => true,
    () => false,
  );
  if (present) return;
  const draft = `${dir}.draft`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true, mode: 0o700 });
  const { dataDir } = await optional(
    '@electric-sql/pglite-prepopulatedfs',
    () => import('@electric-sql/pglite-prepopulatedfs'),
  );
  await unpack(Buffer.from(await (await dataDir()).arrayBuffer()), draft);
  await rm(dir, { recursive: true, force: true });
  await rename(draft, dir);
}

async function unpack(archive: Buffer, into: string): Promise<void> {
  const { extract } = await import('tar-stream');
  const entries = extract();
  entries.end(gunzipSync(archive));
  for await (const entry of entries) {
    const path = join(into, normalize(entry.header.name));
    if (entry.header.type === 'directory') await mkdir(path, { recursive: true, mode: 0o700 });
    else await writeFile(path, await buffer(entry), { mode: 0o600 });
  }
}
