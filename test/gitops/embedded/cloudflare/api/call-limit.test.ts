import { expect, test } from 'vitest';
import { callLimiter } from '../../../../../gitops/embedded/cloudflare/api/call-limit.ts';

test('calls are counted in windows, and refused beyond the limit until the window ends', () => {
  let now = 1_000_000;
  const count = callLimiter({ calls: 2, windowSeconds: 300 }, () => new Date(now));
  expect(count()).toEqual({
    allowed: true,
    headers: { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '300' },
  });
  expect(count().headers).toMatchObject({ 'x-ratelimit-remaining': '0' });
  now += 299_500;
  expect(count()).toMatchObject({ allowed: false, headers: { 'retry-after': '1' } });
  now += 500;
  expect(count()).toMatchObject({ allowed: true, headers: { 'x-ratelimit-remaining': '1' } });
});
