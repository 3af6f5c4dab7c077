import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { writeDurably } from '../../base/durable.ts';
import { cloneBundle, pushAll } from '../../sites/repo/bundle.ts';
import { openSitesRepo } from '../../sites/repo/sites-repo.ts';
import { ABOUT, type About, about, BUNDLE, FILES, TABLES } from './backup/about.ts';
import { readArchive } from './backup/archive.ts';
import { fillDatabase } from './backup/database.ts';
import { readKeyFile } from './backup/key-file.ts';
import { databaseOf, type SettingsOfDaemon } from './backup/machine.ts';
import type { CliContext } from './instance/provisioner-client.ts';
import { CliError } from './output/cli-error.ts';

export interface RestoreOptions {
  /** An age key file. */
  readonly identity: string;
}

/** A backup and the text of the key file that opens it. */
interface Source {
  readonly file: string;
  readonly keys: string;
}

/**
 * Puts back what a backup has. It is read to its end before anything is written, and nothing that exists is replaced. What
 * an interrupted restore has written is no obstacle for the next one.
 */
export async function restore(
  { home, env }: CliContext,
  file: string,
  { identity }: RestoreOptions,
): Promise<void> {
  const source = { file: resolve(file), keys: await readKeyFile(identity) };
  const found = await survey(source);
  if (found.about.isEmbedded) await restoreEmbedded(source, found.about, home);
  else await restoreHost(source, found, env);
}

interface Survey {
  readonly about: About;
  /** The settings of each file of settings. */
  readonly daemons: readonly SettingsOfDaemon[];
}

/** Reads the whole backup, and compares its files with those that exist here. */
async function survey(source: Source): Promise<Survey> {
  const contents = new Map<string, Buffer>();
  const different: string[] = [];
  let found: unknown = null;
  for await (const { name, content } of readArchive(source.file, source.keys)) {
    if (name === ABOUT) found = JSON.parse(content.toString());
    if (!name.startsWith(FILES)) continue;
    // Anyone who knows the recipient can encrypt to it.
    if (name.split('/').includes('..')) throw new CliError(`${source.file} is no backup: it has ${name}`);
    const path = `/${name.slice(FILES.length)}`;
    contents.set(path, content);
    const present = await readFile(path).catch(() => content);
    if (!present.equals(content)) different.push(path);
  }
  const parsed = about.safeParse(found);
  if (!parsed.success) {
    throw new CliError(`${source.file} is no backup, or was made by a newer version of Tagyard`);
  }
  const { data } = parsed;
  if (!data.isEmbedded && different.length > 0) {
    throw new CliError(
      `these files exist with another content; move them away first:\n  ${different.join('\n  ')}`,
    );
  }
  return {
    about: data,
    daemons: data.settings.map((path) => parseEnv(String(contents.get(path) ?? ''))),
  };
}

/** A rename puts the home in place as a whole. */
async function restoreEmbedded(source: Source, made: About, home: string): Promise<void> {
  const present = await readdir(home).catch(() => []);
  if (present.length > 0) {
    throw new CliError(`${home} isn't empty: move it away first, or set TAGYARD_HOME to a new folder`);
  }
  const draft = `${home}.restoring`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true, mode: 0o700 });
  try {
    await putFiles(source, draft);
    await withBundle(source, (bundle) => cloneBundle(bundle, join(draft, 'sites.git')));
    const database = join(draft, 'management', 'pglite');
    await mkdir(dirname(database), { mode: 0o700 });
    await fill(source, made, database);
    await rmdir(home).catch(() => undefined);
    await rename(draft, home);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  process.stdout.write(`${home} is as it was at ${made.at}; start the instance\n`);
}

async function restoreHost(
  source: Source,
  { about: made, daemons }: Survey,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  // A new machine may have to reach database and repository elsewhere.
  const settings = daemons.map((daemon) => ({ ...daemon, ...overriding(env) }));
  const database = made.database === null ? null : databaseOf(settings);
  await putFiles(source, '/');
  const [first] = settings;
  if (first !== undefined) await withBundle(source, (bundle) => restoreRepo(bundle, first, made));
  if (database !== null) await fill(source, made, database);
  process.stdout.write(
    `This machine has what it had at ${made.at}; give the files to the daemons’ users, and start them\n`,
  );
}

const OVERRIDING = ['DATABASE_URL', 'PORT_POOL_DATABASE_URL', 'SITES_REPO'];

function overriding(env: NodeJS.ProcessEnv): SettingsOfDaemon {
  return Object.fromEntries(OVERRIDING.flatMap((name) => (env[name] ? [[name, env[name]]] : [])));
}

async function putFiles({ file, keys }: Source, root: string): Promise<void> {
  for await (const { name, mode, content } of readArchive(file, keys)) {
    if (!name.startsWith(FILES)) continue;
    const path = join(root, name.slice(FILES.length));
    if (existsSync(path)) continue;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeDurably(path, content, mode);
  }
}

/** Calls the work with a file that has the bundle, unless there were no commits. */
async function withBundle(source: Source, work: (path: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'tagyard-restore-'));
  try {
    for await (const { name, content } of readArchive(source.file, source.keys)) {
      if (name !== BUNDLE) continue;
      const path = join(folder, BUNDLE);
      await writeFile(path, content);
      await work(path);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The sites repository outlives the host. It gets the commits only if it is empty. */
async function restoreRepo(bundle: string, settings: SettingsOfDaemon, made: About): Promise<void> {
  const { SITES_REPO: url = '', SITES_BRANCH: branch = 'main', SITES_REPO_GIT_CONFIG: gitConfig } = settings;
  const { SITES_REPO_PASSWORD_FILE: passwordFile } = settings;
  if (url.startsWith('/') && !existsSync(url)) return await cloneBundle(bundle, url);
  const cacheDir = dirname(bundle);
  const repo = await openSitesRepo({ url, branch, gitConfig, passwordFile, cacheDir });
  if ((await repo.head()) === null) {
    const copy = join(cacheDir, 'copy.git');
    await cloneBundle(bundle, copy);
    await pushAll(copy, url, gitConfig, passwordFile);
  } else if (made.revision !== null && !(await repo.has(made.revision))) {
    throw new CliError(
      `SITES_REPO doesn’t have the commit ${made.revision}, which it had at the backup: it is another repository, or its history was rewritten`,
    );
  }
}

async function fill(source: Source, made: About, database: string): Promise<void> {
  if (made.database !== null) await fillDatabase(database, made.database, rowsOf(source));
}

async function* rowsOf({ file, keys }: Source): AsyncGenerator<string> {
  for await (const { name, content } of readArchive(file, keys)) {
    if (name.startsWith(TABLES)) yield content.toString();
  }
}
