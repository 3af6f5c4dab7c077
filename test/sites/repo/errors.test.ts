import { expect, test } from 'vitest';
import { SitesRepoError, wrapGitError } from '../../../sites/repo/errors.ts';

test.each([
  ['an error', new Error('fatal: not found'), 'git fetch: fatal: not found'],
  [
    'an error with a password, which it removes',
    new Error("unable to access 'https://bot:s3cret@git.example/x'"),
    "git fetch: unable to access 'https://git.example/x'",
  ],
  [
    'an error with two logins, which it removes',
    new Error('https://a:b@x.example and ssh://c@y.example'),
    'git fetch: https://x.example and ssh://y.example',
  ],
  ['another value', 'killed', 'git fetch: killed'],
])('wraps %s', async (_what, cause, message) => {
  const failing = wrapGitError('fetch', () => Promise.reject(cause));
  const error = await failing.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(SitesRepoError);
  expect(error).toMatchObject({ message, cause });
});

test('returns what the work returns', async () => {
  expect(await wrapGitError('log', async () => 'output')).toBe('output');
});
