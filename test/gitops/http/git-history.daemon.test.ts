import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';

let daemon: MemoryDaemon;
beforeEach(async () => {
  daemon = await memoryDaemon();
});
afterEach(() => daemon.close());

const git = (args: readonly string[], input = '') => {
  const person = ['-c', 'user.name=Op', '-c', 'user.email=op@example.test'];
  return execFileSync('git', ['-C', daemon.sitesRepo, ...person, ...args], {
    input,
    encoding: 'utf8',
  }).trim();
};

/** A commit whose only file is acme.yaml, with this text. */
function commit(text: string, ...parents: string[]): string {
  const blob = git(['hash-object', '-w', '--stdin'], text);
  const tree = git(['mktree'], `100644 blob ${blob}\tacme.yaml\n`);
  return git(['commit-tree', tree, '-m', 'By hand', ...parents.flatMap((parent) => ['-p', parent])]);
}
const text = (name: string) => formatManifest(daemon.manifest('acme', 1, { name }));

test.each([
  ['the request names the merge', (merge: string) => ({ revision: merge })],
  ['the request names no commit, and the merge is the newest', () => ({})],
])('a revert of a merge restores the file that the branch had before it: %s', async (_what, body) => {
  await daemon.push('acme', text('Before'));
  const base = git(['rev-parse', 'main']);
  const side = commit(text('Merged'), commit(text('Between'), base));
  const merge = commit(text('Merged'), base, side);
  git(['update-ref', 'refs/heads/main', merge]);
  await daemon.hasRead(merge);
  const answer = await daemon.call('POST', '/sites/acme/revert?wait=20', body(merge));
  expect(answer).toMatchObject({ status: 200, body: { operation: { status: 'succeeded' } } });
  expect(git(['show', 'main:acme.yaml'])).toBe(text('Before').trim());
  expect(git(['log', '-1', '--format=%(trailers:key=Reverts,valueonly)', 'main'])).toBe(merge);
});

test('refuses to revert a merge that didn’t change the file on the branch', async () => {
  await daemon.push('acme', text('Same'));
  const base = git(['rev-parse', 'main']);
  const merge = commit(text('Same'), base, commit(text('Other'), base));
  git(['update-ref', 'refs/heads/main', merge]);
  await daemon.hasRead(merge);
  const answer = await daemon.call('POST', '/sites/acme/revert', { revision: merge });
  expect(answer).toMatchObject({ status: 404, body: { code: 'unknown_ref' } });
});

test.each([
  ['a site that is younger than the revision', 'acme', 'unknown_ref', /did not touch acme\.yaml/],
  ['a site that never was', 'other', 'unknown_site', /no commit ever touched other\.yaml/],
])('refuses to revert %s', async (_what, site, code, detail) => {
  await daemon.push('older', formatManifest(daemon.manifest('older', 2)));
  const revision = git(['rev-parse', 'main']);
  await daemon.push('acme', text('Younger'));
  await daemon.hasRead(git(['rev-parse', 'main']));
  const answer = await daemon.call('POST', `/sites/${site}/revert`, { revision });
  expect(answer).toMatchObject({ status: 404, body: { code, detail: expect.stringMatching(detail) } });
});

test('a diff answers after a force-push and a gc that removed what was applied', async () => {
  await daemon.push('acme', text('Applied'));
  await eventually(() => expect(daemon.loop.status('acme')).toMatchObject({ reason: 'Ready' }));
  const applied = git(['rev-parse', 'main']);
  // The new revision is invalid, so it isn't applied.
  const rewritten = commit('site: 1\n');
  git(['update-ref', 'refs/heads/main', rewritten]);
  await daemon.hasRead(rewritten);
  git(['reflog', 'expire', '--expire=now', '--all']);
  git(['gc', '--quiet', '--prune=now']);
  expect(() => git(['cat-file', '-e', applied])).toThrow();
  const answer = await daemon.call('POST', '/diff', {});
  expect(answer).toMatchObject({
    status: 200,
    body: { revision: rewritten, sites: [{ site: 'acme', before: null, after: 'site: 1\n' }] },
  });
});
