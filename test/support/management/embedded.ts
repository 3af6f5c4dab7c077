import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PGlite } from '@electric-sql/pglite';
import { Kysely } from 'kysely';
import { embeddedDatabase, SMALL_ENGINE } from '../../../management/db/connect.ts';
import type { ConnectedDatabase } from '../../../management/db/connected.ts';
import type { Database, Tables } from '../../../management/db/database.ts';
import { EmbeddedDialect } from '../../../management/db/embedded-dialect.ts';
import { migrate } from '../../../management/db/migrate.ts';
import { lendEngine } from './engines.ts';

const MIGRATIONS = fileURLToPath(new URL('../../../management/db/migrations/', import.meta.url));
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/tagyard/', import.meta.url));

/** Loads a copy in a fraction of a second. Creating a database takes seconds, so the copy is kept between runs. */
export async function migratedDatabase(): Promise<ConnectedDatabase> {
  return embeddedDatabase(await migratedEngine());
}

/** What opens the engine of a migrated database. */
export async function migratedEngine(): Promise<() => Promise<PGlite>> {
  const copy = await migratedCopy();
  const startParams = [...PGlite.defaultStartParams, ...SMALL_ENGINE];
  return () => lendEngine(() => PGlite.create({ loadDataDir: copy, startParams }));
}

/** The name contains a digest of all that the copy depends on: the engine and every migration. */
function cachedAt(): string {
  const engine = createRequire(import.meta.url).resolve('@electric-sql/pglite');
  const manifest = join(dirname(engine), '..', 'package.json');
  const parts = [manifest, ...globSync('*.ts', { cwd: MIGRATIONS }).map((path) => join(MIGRATIONS, path))];
  const hash = createHash('sha256');
  for (const path of parts.sort()) hash.update(path).update(readFileSync(path));
  return join(CACHE, `migrated-${hash.digest('hex').slice(0, 16)}.tar`);
}

let copied: Promise<Blob> | undefined;

function migratedCopy(): Promise<Blob> {
  copied ??= readOrMake(cachedAt());
  return copied;
}

async function readOrMake(path: string): Promise<Blob> {
  const kept = await readFile(path).catch(() => null);
  if (kept !== null) return new Blob([kept]);
  const pglite = await PGlite.create();
  const db: Database = new Kysely<Tables>({ dialect: new EmbeddedDialect({ pglite }) });
  await migrate(db);
  const made = await pglite.dumpDataDir('none');
  await db.destroy();
  await mkdir(CACHE, { recursive: true });
  // Several workers may create it at once. A rename makes sure that each reads a complete file.
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, Buffer.from(await made.arrayBuffer()));
  await rename(draft, path);
  return made;
}
