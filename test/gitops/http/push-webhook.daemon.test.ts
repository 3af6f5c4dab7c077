import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';

const WEBHOOK_SECRET = 'a-webhook-secret';
const NEWER = 'another-secret';

let dir: string;
let daemon: MemoryDaemon;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'tagyard-webhook-'));
  writeFileSync(join(dir, 'secret'), `${WEBHOOK_SECRET}\n`);
  // Without a webhook, nothing would be fetched during a test.
  daemon = await memoryDaemon({
    pollSeconds: 3_600,
    pushWebhook: { secretFile: join(dir, 'secret'), branch: 'main' },
  });
});
afterEach(async () => {
  await daemon.close();
  rmSync(dir, { recursive: true, force: true });
});

/** A commit that somebody else pushes: the daemon's mirror doesn't have it. */
function pushByOthers(name: string): string {
  const git = (args: readonly string[], input = '') =>
    execFileSync(
      'git',
      ['-C', daemon.sitesRepo, '-c', 'user.name=Op', '-c', 'user.email=op@a.test', ...args],
      {
        input,
        encoding: 'utf8',
        stdio: ['pipe', 'pipe', 'ignore'],
      },
    ).trim();
  const blob = git(['hash-object', '-w', '--stdin'], formatManifest(daemon.manifest('acme', 1, { name })));
  const parent = git(['for-each-ref', '--format=%(objectname)', 'refs/heads/main']);
  const tree = git(['mktree'], `100644 blob ${blob}\tacme.yaml\n`);
  const commit = git(['commit-tree', tree, '-m', name, ...(parent === '' ? [] : ['-p', parent])]);
  git(['update-ref', 'refs/heads/main', commit]);
  return commit;
}

const hex = (body: string, secret = WEBHOOK_SECRET) =>
  createHmac('sha256', secret).update(body).digest('hex');
const json = { 'content-type': 'application/json' };
const PUSH = JSON.stringify({ ref: 'refs/heads/main', commits: [] });
const FORM = new URLSearchParams({ payload: PUSH }).toString();
const hub = (body: string, secret?: string) => ({
  'x-github-event': 'push',
  'x-hub-signature-256': `sha256=${hex(body, secret)}`,
});

async function report(body: string, headers: Record<string, string>) {
  const { statusCode, payload } = await daemon.app.inject({
    method: 'POST',
    url: '/webhooks/push',
    payload: body,
    headers,
  });
  return { status: statusCode, body: JSON.parse(payload) as Record<string, unknown> };
}

test.each([
  ['GitHub', PUSH, { ...json, ...hub(PUSH) }],
  ['GitHub, as a form', FORM, { 'content-type': 'application/x-www-form-urlencoded', ...hub(FORM) }],
  ['Gitea', PUSH, { ...json, 'x-gitea-event': 'push', 'x-gitea-signature': hex(PUSH) }],
  ['GitLab', PUSH, { ...json, 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': WEBHOOK_SECRET }],
])('a push that %s reports is fetched at once', async (_forge, body, headers) => {
  // An invalid manifest has no run, whose end would start a pass as well.
  const { revision: before } = await daemon.push('acme', 'nothing');
  // The first pass may have read the repository before this commit.
  await daemon.fullPass();
  await daemon.hasRead(before);
  const revision = pushByOthers('By a webhook');
  expect(await report(body, headers)).toEqual({ status: 202, body: { fetches: true } });
  await daemon.hasRead(revision);
});

test.each([
  ['no signature', {}],
  ['a signature by another secret', hub(PUSH, 'guessed')],
  ['a signature of another body', hub(`${PUSH} `)],
  ['Gitea’s form under GitHub’s name', { 'x-hub-signature-256': hex(PUSH) }],
  ['a wrong token', { 'x-gitlab-token': 'guessed' }],
  ['an empty token', { 'x-gitlab-token': '' }],
  ['the daemon’s own secret', { 'x-secret': 'an infra secret' }],
])('refuses a report with %s', async (_what, headers) => {
  expect(await report(PUSH, { ...json, ...headers })).toMatchObject({
    status: 401,
    body: { code: 'wrong_signature' },
  });
});

test.each([
  ['another branch', JSON.stringify({ ref: 'refs/heads/main2' })],
  ['a tag of the branch’s name', JSON.stringify({ ref: 'refs/tags/main' })],
  ['a new webhook', JSON.stringify({ zen: 'Design for failure.', hook_id: 1 })],
  ['text that is no JSON', 'ref: refs/heads/main'],
])('a signed report of %s starts no fetch', async (_what, body) => {
  await daemon.push('acme', daemon.manifest('acme', 1));
  await daemon.fullPass();
  const before = daemon.loop.passes;
  expect(await report(body, { ...json, ...hub(body) })).toEqual({ status: 202, body: { fetches: false } });
  expect(daemon.loop.passes).toBe(before);
});

test('many reports at once are few passes', async () => {
  await daemon.push('acme', daemon.manifest('acme', 1));
  await daemon.fullPass();
  const before = daemon.loop.passes;
  const revision = pushByOthers('The last of many');
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => report(PUSH, { ...json, ...hub(PUSH) })),
  );
  expect(answers.every(({ status }) => status === 202)).toBe(true);
  await daemon.hasRead(revision);
  expect(daemon.loop.passes - before).toBeLessThan(10);
});

test('a secret that is added to the file counts at once, beside the old one', async () => {
  writeFileSync(join(dir, 'secret'), `${WEBHOOK_SECRET}\n${NEWER}\n`);
  for (const secret of [WEBHOOK_SECRET, NEWER]) {
    expect(await report(PUSH, { ...json, ...hub(PUSH, secret) })).toMatchObject({ status: 202 });
  }
  writeFileSync(join(dir, 'secret'), '\n');
  for (const secret of [WEBHOOK_SECRET, '']) {
    expect(await report(PUSH, { ...json, ...hub(PUSH, secret) })).toMatchObject({ status: 401 });
  }
});

test('a body of more than 2 MiB is refused', async () => {
  const body = JSON.stringify({ ref: 'refs/heads/main', filler: 'x'.repeat(2 * 1024 * 1024) });
  expect(await report(body, { ...json, ...hub(body) })).toMatchObject({
    status: 413,
    body: { code: 'body_too_large' },
  });
});

test('other methods, and other paths, need the secret', async () => {
  for (const [method, url] of [
    ['GET', '/webhooks/push'],
    ['POST', '/webhooks/push/'],
    ['POST', '/webhooks'],
  ] as const) {
    const { statusCode } = await daemon.app.inject({ method, url, headers: hub('') });
    expect([method, url, statusCode]).toEqual([method, url, 401]);
  }
});
