import { chmod, lstat, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Home } from '../../../gitops/cli/instance/home.ts';
import { decryptSecret, identitiesIn } from '../../../sites/manifest/secrets.ts';
import { tagyardHere } from '../../support/cli/in-process.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';

let dir: string;
let daemon: MemoryDaemon | undefined;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tagyard-keys-'));
});
afterEach(async () => {
  await daemon?.close();
  daemon = undefined;
  await rm(dir, { recursive: true });
});

const settingsOf = async (path: string) => parseEnv(await readFile(path, 'utf8'));

describe('tagyard keys rotate age', () => {
  test('encrypts every manifest anew, one commit a site, and changes nothing that serves', async () => {
    const newer = await generateIdentity();
    daemon = await memoryDaemon({ newerIdentity: newer });
    const { repo, push, manifest, reaches, applied } = daemon;
    const url = await daemon.app.listen({ host: '127.0.0.1', port: 0 });
    const sites = ['one', 'two', 'three'];
    for (const [number, site] of sites.entries()) await push(site, manifest(site, number));
    for (const site of sites) await reaches(site, 'Ready');
    const configOf = async (site: string) => {
      const file = await repo.readSite((await repo.head()) ?? '', site);
      return (
        /-----BEGIN.*?-----END AGE ENCRYPTED FILE-----/s.exec(file?.text ?? '')?.[0].replace(/^ +/gm, '') ??
        ''
      );
    };
    expect(await decryptSecret(newer, await configOf('one')).catch(() => null)).toBeNull();
    const before = applied.length;
    const done = await tagyardHere(url, ['keys', 'rotate', 'age', '--finish']);
    expect(done).toMatchObject({ exitCode: 0, stderr: '' });
    expect(done.stdout).toContain(`3 sites are encrypted anew, to ${await identityToRecipient(newer)}`);
    const head = await repo.head();
    for (const site of sites) {
      expect((await decryptSecret(newer, await configOf(site))).reveal()).toContain('aWQ9R1RNLVg=');
      const [newest, older] = await repo.history(site);
      expect(newest?.subject).toBe(`Encrypt the secrets anew of ${site}`);
      expect(older?.subject).toBe('By hand');
    }
    await daemon.hasRead(head ?? '');
    for (const site of sites) await reaches(site, 'Ready');
    // Their plaintext is the same, so no container, file or record is replaced.
    expect(applied.length).toBe(before);
    const again = await tagyardHere(url, ['keys', 'rotate', 'age', '--finish']);
    expect(again.stdout).toContain('0 sites are encrypted anew');
    expect(await repo.head()).toBe(head);
  });

  test('names a site that it can’t decrypt, and rotates the others', async () => {
    daemon = await memoryDaemon({ newerIdentity: await generateIdentity() });
    const { push, manifest, reaches } = daemon;
    const url = await daemon.app.listen({ host: '127.0.0.1', port: 0 });
    await push('one', manifest('one', 0));
    const other = await memoryDaemon();
    const foreign = other.manifest('two', 1).containerConfig;
    await other.close();
    await push('two', manifest('two', 1, { containerConfig: foreign }));
    await reaches('one', 'Ready');
    const done = await tagyardHere(url, ['keys', 'rotate', 'age', '--finish']);
    expect(done.exitCode).toBe(1);
    expect(done.stdout).toContain('1 sites are encrypted anew');
    expect(done.stderr).toMatch(/two: containerConfig can’t be decrypted/);
  });

  test('first adds an identity to the key file, and its recipient to management’s settings', async () => {
    const identity = join(dir, 'age-identity');
    const old = await generateIdentity();
    await writeFile(identity, `# made by age-keygen\n${old}\n`, { mode: 0o600 });
    const provisioner = join(dir, 'provisioner.env');
    const management = join(dir, 'management.env');
    await writeFile(provisioner, `AGE_IDENTITY_FILE=${identity}\n`);
    await writeFile(management, `AGE_RECIPIENT=${await identityToRecipient(old)}\nHOST_NAME=tag-1\n`);
    const done = await tagyardHere('', ['keys', 'rotate', 'age', '--settings', provisioner, management]);
    expect(done).toMatchObject({ exitCode: 0, stderr: '' });
    const [first = '', second] = identitiesIn(await readFile(identity, 'utf8'));
    expect(second).toBe(old);
    expect(await settingsOf(management)).toEqual({
      AGE_RECIPIENT: await identityToRecipient(first),
      HOST_NAME: 'tag-1',
    });
    expect((await stat(identity)).mode & 0o777).toBe(0o600);

    // As after an interruption: whatever a daemon has read stays usable.
    await tagyardHere('', ['keys', 'rotate', 'age', '--settings', provisioner, management]);
    const [newest = '', ...older] = identitiesIn(await readFile(identity, 'utf8'));
    expect(older).toEqual([first, old]);
    expect(await settingsOf(management)).toMatchObject({ AGE_RECIPIENT: await identityToRecipient(newest) });
  });

  test('changes nothing if the daemon would refuse the key file', async () => {
    const identity = join(dir, 'age-identity');
    const settings = join(dir, 'both.env');
    await writeFile(settings, `AGE_IDENTITY_FILE=${identity}\nAGE_RECIPIENT=age1of-before\n`);
    const refused = async () => {
      const { exitCode, stderr } = await tagyardHere('', ['keys', 'rotate', 'age', '--settings', settings]);
      expect(exitCode).toBe(1);
      expect(await settingsOf(settings)).toMatchObject({ AGE_RECIPIENT: 'age1of-before' });
      return stderr;
    };
    expect(await refused()).toBe(
      `${identity} can't be used: ENOENT: no such file or directory, open '${identity}'`,
    );
    const damaged = `${await generateIdentity()}\njunk\n`;
    await writeFile(identity, damaged);
    expect(await refused()).toMatch(/age-identity can't be used: line 2 is not an age identity/);
    expect(await readFile(identity, 'utf8')).toBe(damaged);
    await writeFile(settings, `AGE_IDENTITY_FILE=${dir}\nAGE_RECIPIENT=age1of-before\n`);
    expect(await refused()).toMatch(/can't be used: EISDIR/);
  });
});

describe('tagyard keys rotate infra', () => {
  test('keeps the old secret valid until it is finished', async () => {
    const provisioner = join(dir, 'provisioner.env');
    const management = join(dir, 'management.env');
    await writeFile(provisioner, 'INFRA_SECRET=old\nAGE_IDENTITY_FILE=/etc/tagyard/age-identity\n');
    await writeFile(management, 'INFRA_SECRET=old\n');
    const run = (...more: string[]) =>
      tagyardHere('', ['keys', 'rotate', 'infra', ...more, '--settings', provisioner, management]);
    expect(await run()).toMatchObject({ exitCode: 0, stderr: '' });
    const { INFRA_SECRET: secret = '', INFRA_SECRET_PREVIOUS: previous } = await settingsOf(provisioner);
    expect(secret).toMatch(/^[\w-]{32}$/);
    expect(previous).toBe('old');
    expect(await settingsOf(management)).toEqual({ INFRA_SECRET: secret });
    expect(await run('--finish')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await settingsOf(provisioner)).toMatchObject({ INFRA_SECRET: secret, INFRA_SECRET_PREVIOUS: '' });
    expect(await settingsOf(management)).toEqual({ INFRA_SECRET: secret });
  });

  test('goes on with a rotation that was interrupted, or started twice', async () => {
    const provisioner = join(dir, 'provisioner.env');
    const management = join(dir, 'management.env');
    await writeFile(provisioner, 'INFRA_SECRET=old\nAGE_IDENTITY_FILE=/etc/tagyard/age-identity\n');
    await writeFile(management, 'INFRA_SECRET=old\n');
    const run = (...more: string[]) =>
      tagyardHere('', ['keys', 'rotate', 'infra', ...more, '--settings', management, provisioner]);
    await run();
    const { INFRA_SECRET: secret } = await settingsOf(provisioner);
    // It ended before it had written the second file.
    await writeFile(management, 'INFRA_SECRET=old\n');
    const early = await run('--finish');
    expect(early.stderr).toContain('INFRA_SECRET differs between the files of settings');
    expect(await settingsOf(provisioner)).toMatchObject({ INFRA_SECRET_PREVIOUS: 'old' });
    for (const _time of [1, 2]) {
      const again = await run();
      expect(again).toMatchObject({ exitCode: 0, stderr: '' });
      expect(again.stdout).toContain('goes on');
      // The daemons that run know only the old one.
      expect(await settingsOf(provisioner)).toMatchObject({
        INFRA_SECRET: secret,
        INFRA_SECRET_PREVIOUS: 'old',
      });
      expect(await settingsOf(management)).toEqual({ INFRA_SECRET: secret });
    }
  });

  test('changes no file if one of them has no secret', async () => {
    const provisioner = join(dir, 'provisioner.env');
    await writeFile(provisioner, 'INFRA_SECRET=old\nAGE_IDENTITY_FILE=/etc/tagyard/age-identity\n');
    const management = join(dir, 'management.env');
    await writeFile(management, 'HOST_NAME=tag-1\n');
    const failed = await tagyardHere('', ['keys', 'rotate', 'infra', '--settings', provisioner, management]);
    expect(failed.stderr).toBe(`${management} has no INFRA_SECRET`);
    expect(await settingsOf(provisioner)).toMatchObject({ INFRA_SECRET: 'old' });
  });

  test('keeps a link to a file of settings, and the file’s mode and owner', async () => {
    const file = join(dir, 'provisioner.env');
    await writeFile(file, 'INFRA_SECRET=old\nAGE_IDENTITY_FILE=/etc/tagyard/age-identity\n');
    // The usual umask would take the group's right to write.
    await chmod(file, 0o660);
    const link = join(dir, 'linked.env');
    await symlink('provisioner.env', link);
    const { mode, uid, gid } = await stat(file);
    expect(await tagyardHere('', ['keys', 'rotate', 'infra', '--settings', link])).toMatchObject({
      exitCode: 0,
    });
    expect((await lstat(link)).isSymbolicLink()).toBe(true);
    expect(await settingsOf(file)).toMatchObject({ INFRA_SECRET_PREVIOUS: 'old' });
    expect(await stat(file)).toMatchObject({ mode, uid, gid });
  });

  test('changes nothing without the provisioner’s file, because only the provisioner accepts two', async () => {
    const management = join(dir, 'management.env');
    await writeFile(management, 'INFRA_SECRET=old\n');
    for (const more of [[], ['--finish']]) {
      const refused = await tagyardHere('', [
        ...['keys', 'rotate', 'infra', ...more],
        ...['--settings', management],
      ]);
      expect(refused.stderr).toContain('none of the files of settings is the provisioner’s');
    }
    expect(await settingsOf(management)).toEqual({ INFRA_SECRET: 'old' });
  });
});

describe('tagyard keys rotate hop', () => {
  test('names the old secret beside the new one until it is finished, and changes no file of management', async () => {
    const provisioner = join(dir, 'provisioner.env');
    const management = join(dir, 'management.env');
    await writeFile(
      provisioner,
      'HOP_SECRET=the-old-hop-secret\nINFRA_SECRET=infra\nAGE_IDENTITY_FILE=/etc/tagyard/age-identity\n',
    );
    await writeFile(management, 'INFRA_SECRET=infra\n');
    const run = (...more: string[]) =>
      tagyardHere('', ['keys', 'rotate', 'hop', ...more, '--settings', management, provisioner]);
    expect(await run()).toMatchObject({ exitCode: 0, stderr: '' });
    const { HOP_SECRET: secret = '' } = await settingsOf(provisioner);
    expect(secret).toMatch(/^[\w-]{32}$/);
    const during = { HOP_SECRET: secret, HOP_SECRET_PREVIOUS: 'the-old-hop-secret', INFRA_SECRET: 'infra' };
    expect(await settingsOf(provisioner)).toMatchObject(during);
    // The edge may have the new one already.
    expect((await run()).stdout).toContain('goes on');
    expect(await settingsOf(provisioner)).toMatchObject(during);
    expect(await run('--finish')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await settingsOf(provisioner)).toMatchObject({ HOP_SECRET: secret, HOP_SECRET_PREVIOUS: '' });
    expect(await settingsOf(management)).toEqual({ INFRA_SECRET: 'infra' });
  });
});

test('an embedded instance gets its new keys at its next start', async () => {
  const home = new Home(join(dir, 'home'));
  await home.prepare();
  const { age, infraSecret, hopSecret, ...others } = await home.instance();
  const env = { TAGYARD_HOME: home.path };
  for (const key of ['age', 'infra', 'hop']) {
    expect(await tagyardHere('', ['keys', 'rotate', key], env)).toMatchObject({ exitCode: 0, stderr: '' });
  }
  const now = await home.instance();
  expect(now).toMatchObject(others);
  expect(now.infraSecret).not.toBe(infraSecret);
  expect(now.hopSecret).not.toBe(hopSecret);
  const [first = '', second] = identitiesIn(now.age.identity);
  expect([await identityToRecipient(first), second]).toEqual([now.age.recipient, age.identity]);

  const finished = await tagyardHere('', ['keys', 'rotate', 'infra', '--finish'], env);
  expect(finished.stdout).toMatch(/^There is nothing to finish/);
  expect(await home.instance()).toEqual(now);
});
