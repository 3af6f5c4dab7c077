import { expect, test } from 'vitest';
import { callLimiter } from '../../../../../sites/local/cloudflare/api/call-limit.ts';

/** A limiter with a clock in seconds. */
function limiter(calls: number) {
  let seconds = 1_000_000;
  const count = callLimiter({ calls, seconds: 300 }, () => new Date(seconds * 1000));
  return {
    count,
    advance(by: number) {
      seconds += by;
    },
  };
}

test('every answer says how many calls are left, and when more become possible', () => {
  const { count, advance } = limiter(3);
  count();
  advance(100);
  expect(count()).toEqual({
    allowed: true,
    headers: {
      ratelimit: '"default";r=1;t=200',
      'ratelimit-policy': '"default";q=3;w=300',
      'x-ratelimit-limit': '3',
      'x-ratelimit-remaining': '1',
    },
  });
});

test('the call beyond the limit is refused, and every call in the five minutes after it', () => {
  const { count, advance } = limiter(2);
  count();
  advance(200);
  count();
  advance(50);
  expect(count()).toMatchObject({
    allowed: false,
    headers: { 'retry-after': '300', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': expect.any(String) },
  });
  // After this, the first two calls are out of the window.
  advance(299);
  expect(count()).toMatchObject({ allowed: false, headers: { 'retry-after': '1' } });
  advance(1);
  expect(count()).toMatchObject({ allowed: true, headers: { 'x-ratelimit-remaining': '1' } });
});

test('the window moves: calls just before and after the five-minute mark count together', () => {
  const { count, advance } = limiter(2);
  advance(299);
  count();
  advance(2);
  count();
  advance(2);
  expect(count().allowed).toBe(false);
});

test('more calls than the limit, but never too many in five minutes, are all allowed', () => {
  const { count, advance } = limiter(1200);
  for (let call = 0; call < 5000; call += 1) {
    expect(count().allowed).toBe(true);
    advance(0.25);
  }
});
