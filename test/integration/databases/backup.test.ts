import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectPostgres } from '../../../management/db/connect.ts';
import { git } from '../../../sites/repo/git/git.ts';
import { tagyardHere } from '../../support/cli/in-process.ts';
import { describeWith } from '../../support/components.ts';
import { PostgresqlFixture } from '../../support/management/postgresql.ts';
import { creation, World } from '../../support/management/world.ts';

const raise = (error: Error) => {
  throw error;
};

describeWith('postgresql', 'a backup of a host', () => {
  let postgresql: PostgresqlFixture;
  let dir: string;
  beforeAll(async () => {
    postgresql = await PostgresqlFixture.start();
    dir = await mkdtemp(join(tmpdir(), 'tagyard-host-'));
  });
  afterAll(async () => {
    await postgresql?.stop();
    await rm(dir, { recursive: true });
  });

  test('brings database, settings, keys and an empty repository back, and refuses what is in use', async () => {
    const { urls, db, owner } = await postgresql.connections();
    const origin = join(dir, 'sites.git');
    const world = await World.open({ db, owner, bare: origin, logLevel: 'silent' });
    const client = await world.client();
    const made = await world.call('POST', '/server-containers', {
      as: 'owner',
      body: creation(client, 'kept.example'),
    });
    expect(made.status).toBe(202);
    const asked = { as: 'owner', body: { name: 'CI', client, scopes: ['viewer'] } };
    const token = (await world.call('POST', '/tokens', asked)).body.value;

    const identity = join(dir, 'age-identity');
    const own = await generateIdentity();
    const key = `${own}\n`;
    await writeFile(identity, key, { mode: 0o600 });
    const settings = join(dir, 'management.env');
    const lines = (recipient: string) => [
      'AUTH_JWKS_URL=https://login.example.net/jwks.json',
      `DATABASE_URL=${urls.api}`,
      `PORT_POOL_DATABASE_URL=${urls.owner}`,
      `SITES_REPO=${origin}`,
      `STATE_DIR=${join(dir, 'state')}`,
      'INFRA_SECRET=the-same',
      `AGE_RECIPIENT=${recipient}`,
    ];
    const provisioner = join(dir, 'provisioner.env');
    await writeFile(provisioner, `AGE_IDENTITY_FILE=${identity}\nINFRA_SECRET=the-same\n`);
    const recipient = await identityToRecipient(await generateIdentity());
    const backup = (file: string, to: string) =>
      tagyardHere('', ['backup', file, '--recipient', to, '--settings', settings, provisioner]);
    const file = join(dir, 'host.age');

    await writeFile(settings, lines(recipient).join('\n'));
    expect((await backup(file, recipient)).stderr).toContain('AGE_RECIPIENT is of none of the identities');
    await writeFile(settings, lines(await identityToRecipient(own)).join('\n'));
    const offline = await generateIdentity();
    const offlineFile = join(dir, 'offline-identity');
    await writeFile(offlineFile, `${offline}\n`);
    // The API is in use meanwhile.
    const live = join(dir, 'live.age');
    const to = await identityToRecipient(offline);
    expect(await backup(live, to)).toMatchObject({ exitCode: 0, stderr: '' });
    const restore = (env: Record<string, string> = {}, from = file) =>
      tagyardHere('', ['restore', from, '--identity', offlineFile], env);

    // The database is in use.
    expect((await restore({}, live)).stderr).toContain(
      'the database was not restored: the database isn’t empty',
    );
    await world.close();
    expect(await backup(file, to)).toMatchObject({ exitCode: 0, stderr: '' });
    const before = await postgresql.dump(urls);

    // A file with another content stays.
    await writeFile(identity, 'another');
    expect((await restore()).stderr).toContain(`move them away first:\n  ${identity}`);

    // The host, its database and the repository are lost.
    await rm(identity);
    await rm(settings);
    const fresh = await postgresql.database();
    const bare = join(dir, 'remote.git');
    await git(dir, ['init', '--quiet', '--bare', '--initial-branch=main', bare]);
    const elsewhere = {
      DATABASE_URL: fresh.api,
      PORT_POOL_DATABASE_URL: fresh.owner,
      SITES_REPO: `file://${bare}`,
    };
    expect(await restore(elsewhere)).toMatchObject({ exitCode: 0, stderr: '' });
    const after = await postgresql.dump(fresh);
    for (const [table, rows] of after) {
      if (/^kysely|^sessions$/.test(table)) continue;
      expect(rows.split('\n').toSorted(), table).toEqual(before.get(table)?.split('\n').toSorted());
    }

    const again = await World.open({
      db: connectPostgres(fresh.api, raise),
      owner: connectPostgres(fresh.owner, raise),
      bare,
      logLevel: 'silent',
    });
    try {
      const found = await again.call('GET', `/server-containers/${made.body.id}`, { token });
      expect(found).toMatchObject({ status: 200, body: { siteId: made.body.siteId } });
      const further = await again.call('POST', '/server-containers', {
        as: 'owner',
        body: creation(client, 'further.example'),
      });
      expect(further.status, JSON.stringify(further.body)).toBe(202);
    } finally {
      await again.close();
    }

    // A repository with another history isn't this installation's.
    const other = join(dir, 'other.git');
    await git(dir, ['clone', '--quiet', '--bare', bare, other]);
    const tree = (await git(other, ['rev-parse', 'main^{tree}'])).toString().trim();
    const env = {
      GIT_AUTHOR_NAME: 'a',
      GIT_AUTHOR_EMAIL: 'a@b',
      GIT_COMMITTER_NAME: 'a',
      GIT_COMMITTER_EMAIL: 'a@b',
    };
    const orphan = (await git(other, ['commit-tree', '-m', 'Another history', tree], { env }))
      .toString()
      .trim();
    await git(other, ['update-ref', 'refs/heads/main', orphan]);
    const lost = join(dir, 'lost.git');
    await git(dir, ['init', '--quiet', '--bare', '--initial-branch=main', lost]);
    await git(other, ['push', '--quiet', lost, 'main']);
    const refused = await restore({ ...elsewhere, SITES_REPO: `file://${lost}` });
    expect(refused.stderr).toContain('SITES_REPO doesn’t have the commit');
  });
});
