import { once } from 'node:events';
import { existsSync } from 'node:fs';
import {
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { execa } from 'execa';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readArchive, writeArchive } from '../../../gitops/cli/backup/archive.ts';
import { Home } from '../../../gitops/cli/instance/home.ts';
import { connectEmbedded } from '../../../management/db/connect.ts';
import { migrate } from '../../../management/db/migrate.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo } from '../../../sites/repo/sites-repo.ts';
import { CLI } from '../../support/cli/command.ts';
import { tagyardHere } from '../../support/cli/in-process.ts';

/** The home of an instance that has run, with rows of every kind that is hard to copy. */
let dir: string;
let home: string;
let file: string;
let identity: string;
let head: string | null;

const tagyard = (args: readonly string[], path = home) => tagyardHere('', args, { TAGYARD_HOME: path });
const restore = (from: string, into: string, keys = identity) =>
  tagyard(['restore', from, '--identity', keys], into);

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tagyard-backup-'));
  home = join(dir, 'home');
  file = join(dir, 'backup.age');
  identity = `${home}-backup-identity`;
  const instance = new Home(home);
  await instance.prepare();
  await instance.instance();
  await initSitesRepo(instance.at('sites.git'));
  const repo = await openSitesRepo({ url: instance.at('sites.git'), cacheDir: dir });
  await repo.commit({
    site: 'clients/acme',
    edit: async () => 'name: Acme\n',
    subject: 'Add Acme',
    author: { name: 'Ada', email: 'ada@example.net' },
    trailers: {},
  });
  head = await repo.head();
  await mkdir(instance.at('provisioner', 'inside'), { recursive: true });
  await writeFile(instance.at('provisioner', 'inside', 'id'), '0123456789abcdef', { mode: 0o600 });
  await mkdir(instance.at('management'));
  await filled(instance.at('management', 'pglite'));
  expect(await tagyard(['backup', file])).toMatchObject({ exitCode: 0, stderr: '' });
}, 300_000);
afterAll(() => rm(dir, { recursive: true }));

async function filled(path: string): Promise<void> {
  const db = connectEmbedded(path);
  await migrate(db);
  await sql`insert into clients (id, name)
    select gen_random_uuid(), 'Ünï "quoted", (brackets) \\ ' || n from generate_series(1, 450) as n`.execute(
    db,
  );
  await sql`insert into containers (id, site_id, client_id, status, manifest)
    select gen_random_uuid(), 'site-' || row_number() over (), id, 'active', '{"name": "A", "nothing": null}'
    from clients`.execute(db);
  await sql`insert into container_events (container_id, kind, status)
    select id, 'status', 'active' from containers`.execute(db);
  await sql`insert into sessions (id_hash, subject, name, email, sealed, created_at, seen_at, refreshed_at)
    values ('a', 'ada', 'Ada', 'ada@example.net', 'x', now(), now(), now())`.execute(db);
  await db.destroy();
}

/** All rows as text, by table. */
async function rowsOf(path: string): Promise<Record<string, unknown>> {
  const db = connectEmbedded(join(path, 'management', 'pglite'));
  try {
    const { rows } = await sql<{ name: string }>`
      select relname as name from pg_class where relkind = 'r'
      and relnamespace = 'public'::regnamespace order by 1`.execute(db);
    const found: Record<string, unknown> = {};
    for (const { name } of rows) {
      const all = await sql<{ row: string }>`select one::text as row from ${sql.table(name)} as one
        order by 1`.execute(db);
      found[name] = all.rows.map(({ row }) => row);
    }
    return found;
  } finally {
    await db.destroy();
  }
}

test('restores every row, commit and file, but no session', async () => {
  const into = join(dir, 'restored');
  expect(await restore(file, into)).toMatchObject({ exitCode: 0, stderr: '' });
  const before = await rowsOf(home);
  const { sessions, kysely_migration, ...after } = await rowsOf(into);
  expect(sessions).toEqual([]);
  expect(kysely_migration).toHaveLength(Object(before.kysely_migration).length);
  expect(before).toMatchObject(after);
  expect(Object(after.clients)).toHaveLength(450);
  const db = connectEmbedded(join(into, 'management', 'pglite'));
  // The sequence goes on, and the triggers work again.
  const counted = () => sql<{ sum: string }>`select sum(containers) from container_counts`.execute(db);
  expect((await counted()).rows).toEqual([{ sum: '450' }]);
  await sql`insert into containers (id, site_id, client_id, status, manifest)
    select gen_random_uuid(), 'further', id, 'active', '{}' from clients limit 1`.execute(db);
  expect((await counted()).rows).toEqual([{ sum: '451' }]);
  await db.destroy();
  const repo = await openSitesRepo({ url: join(into, 'sites.git'), cacheDir: dir });
  expect(await repo.head()).toBe(head);
  for (const name of ['instance.json', join('provisioner', 'inside', 'id')]) {
    expect(await readFile(join(into, name))).toEqual(await readFile(join(home, name)));
    expect((await stat(join(into, name))).mode & 0o777).toBe(0o600);
  }
}, 180_000);

test('the file is encrypted, readable by its owner only, and never replaced', async () => {
  expect((await readFile(file)).subarray(0, 21).toString()).toBe('age-encryption.org/v1');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const again = await tagyard(['backup', file]);
  expect(again).toMatchObject({ exitCode: 1, stderr: `${file} exists already; name a new file` });
});

test('a running instance is refused, because its database has one user', async () => {
  const lock = new Home(home).lock();
  try {
    const refused = await tagyard(['backup', join(dir, 'other.age')]);
    expect(refused.stderr).toContain('an instance already runs on');
    expect(existsSync(join(dir, 'other.age'))).toBe(false);
  } finally {
    lock.release();
  }
});

test('what is refused makes no identity', async () => {
  const other = new Home(join(dir, 'other'));
  await other.prepare();
  await other.instance();
  expect((await tagyard(['backup', file], other.path)).stderr).toContain('exists already');
  const lock = other.lock();
  const refused = await tagyard(['backup', join(dir, 'other.age')], other.path);
  lock.release();
  expect(refused.stderr).toContain('an instance already runs on');
  expect(existsSync(`${other.path}-backup-identity`)).toBe(false);
});

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)(
  'an end by %s leaves no file',
  async (signal, exitCode) => {
    // A database that never answers.
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const settings = join(dir, 'silent.env');
    const lines = [
      `SITES_REPO=${join(home, 'sites.git')}`,
      'AUTH_JWKS_URL=https://login.example/jwks',
      `DATABASE_URL=postgres://tagyard@127.0.0.1:${Object(server.address()).port}/tagyard`,
    ];
    await writeFile(settings, lines.join('\n'));
    const made = join(dir, 'interrupted.age');
    const recipient = await identityToRecipient(await generateIdentity());
    const args = [CLI, 'backup', made, '--recipient', recipient, '--settings', settings];
    const running = execa(process.execPath, args, { reject: false });
    try {
      const [socket] = (await once(server, 'connection')) as [Socket];
      const isClosed = once(socket.resume(), 'close');
      expect(existsSync(`${made}.part`)).toBe(true);
      running.kill(signal);
      expect(await running).toMatchObject({ exitCode });
      expect(existsSync(`${made}.part`)).toBe(false);
      // What has read the database has ended, too.
      await isClosed;
    } finally {
      running.kill('SIGKILL');
      server.close();
    }
  },
  180_000,
);

test('a disk that is full and a part that is missing leave no file', async () => {
  const full = join(dir, 'full.age');
  // Writes to this device fail as on a full disk (full(4)).
  await symlink('/dev/full', `${full}.part`);
  const failed = await tagyard(['backup', full]);
  expect(failed.stderr).toMatch(/full\.age was not written: ENOSPC/);

  const repo = join(home, 'sites.git');
  await rename(repo, `${repo}.away`);
  try {
    expect((await tagyard(['backup', full])).stderr).toMatch(/full\.age was not written: git /);
  } finally {
    await rename(`${repo}.away`, repo);
  }
  expect((await readdir(dir)).filter((name) => name.startsWith('full'))).toEqual([]);
}, 180_000);

test('a damaged recipient is refused', async () => {
  const refused = await tagyard(['backup', join(dir, 'other.age'), '--recipient', 'age1nobody']);
  expect(refused.stderr).toContain('the recipient age1nobody');
});

test.each([
  [
    'one bit is altered',
    async (path: string) => {
      const bytes = await readFile(path);
      bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
      await writeFile(path, bytes);
    },
  ],
  ['it is truncated', async (path: string) => await truncate(path, (await stat(path)).size - 1)],
  [
    'it is truncated between two chunks of age',
    async (path: string) => {
      const { length } = await readFile(path);
      const head = length % (65_536 + 16);
      await truncate(path, head + 65_552);
    },
  ],
  ['it is empty', async (path: string) => await truncate(path, 0)],
  ['it is something else', async (path: string) => await writeFile(path, 'not a backup')],
])('nothing is restored if %s', async (_what, damage) => {
  const copy = join(dir, 'damaged.age');
  await cp(file, copy);
  await damage(copy);
  const into = join(dir, 'untouched');
  const refused = await restore(copy, into);
  expect(refused.exitCode).toBe(1);
  expect(refused.stderr).toMatch(/is damaged, truncated or no backup: .*; nothing was restored$/);
  expect(existsSync(into)).toBe(false);
  await rm(copy);
});

test('another identity is refused', async () => {
  const other = join(dir, 'other-identity');
  await writeFile(other, `${await generateIdentity()}\n`);
  const refused = await restore(file, join(dir, 'untouched'), other);
  expect(refused.stderr).toBe(`${file} is encrypted to another identity`);
  await writeFile(other, 'junk\n');
  expect((await restore(file, join(dir, 'untouched'), other)).stderr).toMatch(
    /other-identity can't be used: line 1 is not an age identity/,
  );
});

test('a path that can’t be used is named in one sentence', async () => {
  const lost = join(dir, 'none', 'lost.age');
  const run = async (args: readonly string[], path = home) =>
    await execa(process.execPath, [CLI, ...args], { env: { TAGYARD_HOME: path }, reject: false });
  expect(await run(['backup', lost])).toMatchObject({
    exitCode: 1,
    stderr: `tagyard: ${lost} was not written: ENOENT: no such file or directory, open '${lost}.part'`,
  });
  const settings = join(dir, 'no-keys.env');
  await writeFile(settings, `AGE_IDENTITY_FILE=${lost}\nAGE_RECIPIENT=age1of-before\n`);
  const recipient = await identityToRecipient(await generateIdentity());
  expect(
    await run(['backup', join(dir, 'other.age'), '--recipient', recipient, '--settings', settings]),
  ).toMatchObject({
    exitCode: 1,
    stderr: `tagyard: ${lost} can't be used: ENOENT: no such file or directory, open '${lost}'`,
  });
  expect(await run(['restore', file, '--identity', identity], join(file, 'home'))).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/^tagyard: ENOTDIR: not a directory, .+$/),
  });
}, 180_000);

test('a host’s file has what its settings name, and nothing of the folder in which it is made', async () => {
  const host = join(dir, 'host');
  await mkdir(join(host, '.ssh'), { recursive: true });
  await writeFile(join(host, '.ssh', 'id_ed25519'), 'of the user who makes the backup');
  const kubeconfigs = ['one.kubeconfig', 'two.kubeconfig'].map((name) => join(host, name));
  for (const path of kubeconfigs) await writeFile(path, 'apiVersion: v1\n');
  const settings = join(host, 'provisioner.env');
  const lines = [`SITES_REPO=${join(home, 'sites.git')}`, `KUBECONFIG=${kubeconfigs.join(':')}`];
  await writeFile(settings, lines.join('\n'));
  const keys = await readFile(identity, 'utf8');
  const made = join(dir, 'made-by-host.age');
  const to = await identityToRecipient(keys.trim());
  const args = ['backup', made, '--recipient', to, '--settings', settings];
  const asked = () => execa(process.execPath, [CLI, ...args], { cwd: host, reject: false });
  expect(await asked()).toMatchObject({ exitCode: 0, stderr: '' });
  const names: string[] = [];
  for await (const { name } of readArchive(made, keys)) names.push(name);
  const expected = [settings, ...kubeconfigs].map((path) => `files${path}`);
  expect(names).toEqual(['sites.bundle', ...expected, 'backup.json']);

  // The copy of a remote repository isn't looked for in the current folder either.
  await cp(join(home, 'sites.git'), join(host, 'sites.git'), { recursive: true });
  await writeFile(settings, 'SITES_REPO=https://git.example/sites.git\n');
  await rm(made);
  expect((await asked()).stderr).toContain('STATE_DIR isn’t set');
}, 180_000);

test('a file that a stranger has made can’t write outside of the home', async () => {
  const made = join(dir, 'made.age');
  const recipient = await identityToRecipient((await readFile(identity, 'utf8')).trim());
  const about = { version: 1, release: '0', at: new Date().toISOString(), isEmbedded: true };
  await writeArchive(made, recipient, async (put) => {
    await put('files/../escaped', 'x');
    await put('backup.json', JSON.stringify({ ...about, settings: [], database: null, revision: null }));
  });
  const refused = await restore(made, join(dir, 'untouched'));
  expect(refused.stderr).toBe(`${made} is no backup: it has files/../escaped`);
  expect(existsSync(join(dir, 'escaped'))).toBe(false);
});

test('a home with anything in it is refused, and stays as it is', async () => {
  const before = await readdir(home);
  const refused = await restore(file, home);
  expect(refused.stderr).toContain(`${home} isn't empty`);
  expect(await readdir(home)).toEqual(before);
});

test('a schema of a newer version is refused', async () => {
  const path = join(home, 'management', 'pglite');
  const db = connectEmbedded(path);
  await sql`insert into kysely_migration (name, timestamp) values ('9999_future', 'now')`.execute(db);
  await db.destroy();
  const newer = join(dir, 'newer.age');
  await tagyard(['backup', newer]);
  const into = join(dir, 'untouched');
  const refused = await restore(newer, into);
  expect(refused.stderr).toContain('made by a newer version of Tagyard (migration 9999_future)');
  expect(existsSync(into)).toBe(false);
}, 180_000);
