import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  checkAgeIdentity,
  checkDnsZones,
  checkHostAddress,
  checkKeyFiles,
  checkNginx,
} from '../../../gitops/host-report/setting-checks.ts';
import { checkClock, checkPorts, checkRights } from '../../../gitops/report/common-checks.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { findingOf } from '../../support/checks/findings.ts';
import { silentServer } from '../../support/silent.ts';

let stack: AsyncDisposableStack;
let folder: string;
beforeEach(async () => {
  stack = new AsyncDisposableStack();
  folder = await mkdtemp(join(tmpdir(), 'tagyard-check-'));
  stack.defer(() => rm(folder, { recursive: true }));
});
afterEach(() => stack.disposeAsync());

async function serve(date: string | null) {
  const server = createServer((_request, response) => {
    response.sendDate = false;
    if (date !== null) response.setHeader('date', date);
    response.end();
  });
  await new Promise<void>((done) => server.listen({ port: 0, host: '127.0.0.1' }, done));
  stack.defer(() => new Promise((done) => server.close(() => done())));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`; // it listens on TCP
}

test.each([
  ['an hour ahead', 3_600, 'ahead of'],
  ['an hour behind', -3_600, 'behind'],
])('a clock that is %s is a finding until it is set', async (_what, seconds, words) => {
  const now = Date.UTC(2026, 0, 1);
  const url = await serve(new Date(now).toUTCString());
  expect(findingOf(await checkClock(url, () => now + seconds * 1000), `3600 s ${words}`)).toBe('wrong');
  expect(await checkClock(url, () => now + 2_000)).toMatchObject({ name: 'clock', status: 'passed' });
});

test('a clock is not checked where nothing answers, or nothing says the time', async () => {
  const { url, close } = await silentServer();
  await close();
  expect(await checkClock(url)).toMatchObject({ status: 'skipped', fix: null });
  expect(await checkClock(await serve(null))).toMatchObject({ status: 'skipped' });
});

test('an age identity is a finding while it is missing, damaged, or not that of AGE_RECIPIENT', async () => {
  const file = join(folder, 'age');
  const [first, second] = [await generateIdentity(), await generateIdentity()];
  expect(findingOf(await checkAgeIdentity(file, undefined), /AGE_IDENTITY_FILE .*ENOENT/)).toBe('unreadable');
  await writeFile(file, 'nonsense\n');
  expect(findingOf(await checkAgeIdentity(file, undefined), /line 1 is not an age identity/)).toBe(
    'unreadable',
  );
  await writeFile(file, `${first}\n`);
  expect(await checkAgeIdentity(file, undefined)).toMatchObject({ name: 'age_identity', status: 'passed' });
  const recipient = await identityToRecipient(second);
  expect(findingOf(await checkAgeIdentity(file, recipient), /^AGE_RECIPIENT/)).toBe('other');
  await writeFile(file, `${first}\n${second}\n`);
  expect(await checkAgeIdentity(file, recipient)).toMatchObject({ status: 'passed' });
});

test.each([0o644, 0o640, 0o604])('a key file with the mode %o is a finding until chmod 600', async (mode) => {
  const tls = join(folder, 'tls');
  await mkdir(tls);
  const files = [join(folder, 'age'), join(tls, 'shop.key')];
  const checked = { AGE_IDENTITY_FILE: files[0], TLS_DIR: tls, DNS_TSIG_SECRET_FILE: undefined };
  for (const file of files) {
    await writeFile(file, 'secret');
    await chmod(file, mode);
  }
  await writeFile(join(tls, 'shop.crt'), 'public', { mode: 0o644 });
  const check = await checkKeyFiles(checked);
  expect(
    findingOf(check, new RegExp(`AGE_IDENTITY_FILE: ${files[0]} has the mode 0${mode.toString(8)}; TLS_DIR`)),
  ).toBe('open');
  for (const file of files) await chmod(file, 0o600);
  expect(await checkKeyFiles(checked)).toMatchObject({ name: 'key_files', status: 'passed' });
});

test('resolvers without an answer are a finding; names under localhost need none', async () => {
  const zones = { EDGE_DOMAIN: 'example.net' };
  expect(findingOf(await checkDnsZones(zones, ['127.0.0.1:9']), /^EDGE_DOMAIN: DNS_RESOLVERS 127/)).toBe(
    'silent',
  );
  expect(await checkDnsZones({ EDGE_DOMAIN: 'shop.localhost' }, ['127.0.0.1:9'])).toMatchObject({
    name: 'dns_zones',
    status: 'passed',
  });
});

test('a foreign HOST_ADDRESS is a finding with a site, and not checked before the first one', async () => {
  expect(await checkHostAddress('127.0.0.1', null)).toMatchObject({ name: 'host_address', status: 'passed' });
  expect(await checkHostAddress('192.0.2.1', null)).toMatchObject({
    status: 'skipped',
    detail: expect.stringContaining('HOST_ADDRESS: 192.0.2.1 is no address of this machine'),
  });
});

test('a HOST_ADDRESS where nothing answers for a site is a finding until it is this machine’s', async () => {
  const cert = await readFile(new URL('../../support/tls/localhost.cert.pem', import.meta.url));
  const key = await readFile(new URL('../../support/tls/localhost.key.pem', import.meta.url));
  const server = createTlsServer({ cert, key });
  await new Promise<void>((done) => server.listen({ port: 0, host: '127.0.0.1' }, done));
  const { port } = server.address() as AddressInfo; // it listens on TCP
  const proxy = { name: 'localhost', address: '127.0.0.1', port };
  const found = await checkHostAddress('192.0.2.1', proxy);
  expect(
    findingOf(found, /^HOST_ADDRESS: 192\.0\.2\.1 is no address of this machine, and nothing answers/),
  ).toBe('foreign');
  expect(await checkHostAddress('127.0.0.1', proxy)).toMatchObject({ status: 'passed', fix: null });
  await new Promise((done) => server.close(done));
  expect(await checkHostAddress('192.0.2.1', proxy)).toMatchObject({ status: 'skipped' });
});

test('a port of another process is a finding until the setting names a free one', async () => {
  const { port, close } = await silentServer();
  const at = (number: number) => ({
    setting: 'PROXY_TLS_PORT',
    host: '127.0.0.1',
    port: number,
    isOurs: false,
  });
  const check = await checkPorts([at(port)]);
  expect(
    findingOf(check, new RegExp(`^PROXY_TLS_PORT: port ${port} is taken by process ${process.pid}`)),
  ).toBe('taken');
  expect(await checkPorts([{ ...at(port), isOurs: true }])).toMatchObject({
    name: 'ports',
    status: 'passed',
  });
  await close();
  expect(await checkPorts([at(port)])).toMatchObject({ status: 'passed' });
});

test('an NGINX_BIN that is missing or something else is a finding', async () => {
  const options = { systemConfig: undefined, prefix: folder };
  expect(findingOf(await checkNginx(join(folder, 'none'), options), /^NGINX_BIN/)).toBe('missing');
  expect(findingOf(await checkNginx(process.execPath, options), /is not nginx/)).toBe('missing');
});

test('a sites repository is a finding while it is missing or lacks SITES_BRANCH', async () => {
  const url = join(folder, 'sites.git');
  const ask = (branch: string, at = url) => checkRights({ url: at, branch });
  expect(findingOf(await ask('main'), /^SITES_REPO/)).toBe('refused');
  await initSitesRepo(url);
  expect(await ask('main')).toMatchObject({ name: 'sites_repo_rights', status: 'passed' });
  const remote = `file://${url}`;
  expect(await ask('main', remote)).toMatchObject({ status: 'passed' });
  await writeFile(join(url, 'commit'), '');
  const { git } = await import('../../../sites/repo/git/git.ts');
  const commit = 'commit refs/heads/main\ncommitter A <> 0 +0000\ndata 0\n\ndone\n';
  await git(url, ['fast-import', '--quiet', '--done'], { input: commit, env: { GIT_DIR: url } });
  for (const at of [url, remote]) {
    expect(findingOf(await ask('other', at), /^SITES_BRANCH: the repository has no branch other/)).toBe(
      'branch',
    );
    expect(await ask('main', at)).toMatchObject({ status: 'passed' });
  }
  const branches = await git(url, ['for-each-ref', '--format=%(refname)'], { env: { GIT_DIR: url } });
  expect(branches.toString()).toBe('refs/heads/main\n');
});

test('a key that may only read is a finding with the server’s own words, until it may push', async () => {
  const url = join(folder, 'sites.git');
  await initSitesRepo(url);
  const ssh = join(folder, 'ssh');
  // As a host of repositories answers a read-only key.
  const write = (refusal: string) =>
    writeFile(ssh, `#!/bin/sh\nfor last; do :; done\ncase "$last" in ${refusal} esac\nexec sh -c "$last"\n`);
  await write('*receive-pack*) echo "ERROR: this key is marked as read only" >&2; exit 1;;');
  await chmod(ssh, 0o755);
  const gitConfig = join(folder, 'gitconfig');
  await writeFile(gitConfig, `[core]\n  sshCommand = ${ssh}\n`);
  const repo = { url: `git@localhost:${url}`, branch: 'main', gitConfig };
  const found = await checkRights(repo);
  expect(findingOf(found, /^SITES_REPO: .*this key is marked as read only/)).toBe('refused');
  await write('nothing) ;;');
  expect(await checkRights(repo)).toMatchObject({ status: 'passed', fix: null });
  expect(await readdir(join(url, 'refs', 'heads'))).toEqual([]);
});
