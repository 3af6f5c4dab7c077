import { describe, expect, test } from 'vitest';
import { formatManifest, parseManifest } from '../../../sites/manifest/load.ts';
import { readManifest } from '../../../sites/manifest/read.ts';
import { hostileManifests } from '../../support/hostile-manifests.ts';
import { manifestInput } from '../../support/manifest.ts';

describe.each([256 * 1024, 16_000])('a manifest of %i bytes', (bytes) => {
  test.each(hostileManifests(bytes))('with $what is valid: $valid', async ({ text, valid }) => {
    const parsed = await readManifest(text, 'acme-shop.yaml');
    expect(parsed.ok).toBe(valid);
    if (parsed.ok) return;
    expect(parsed.problems.length).toBeGreaterThan(0);
    expect(parsed.problems.length).toBeLessThanOrEqual(20);
    expect(JSON.stringify(parsed.problems).length).toBeLessThan(10_000);
  });
});

test.each([
  ['keys', 'k: 1\n', 'has more than 2000 keys and values: remove those that are not needed'],
  [
    'ends of documents',
    '...\n',
    expect.stringMatching(/^has more than 8000 YAML marks \(.*\): remove those/),
  ],
  ['empty keys', ':\n', expect.stringMatching(/^has more than 8000 YAML marks/)],
])('%s are counted before anything else, and the exceeded limit is named', (_what, piece, message) => {
  const text = `${formatManifest(manifestInput())}${piece.repeat(26_000)}`;
  expect(parseManifest(text, 'acme-shop.yaml')).toMatchObject({
    problems: [{ message, line: expect.any(Number) }],
  });
});

test('of many problems, the first 19 are reported, and how many others there are', () => {
  const keys = Array.from({ length: 100 }, (_, number) => `k${number}: 1\n`).join('');
  const parsed = parseManifest(`${formatManifest(manifestInput())}${keys}`, 'acme-shop.yaml');
  const problems = parsed.ok ? [] : parsed.problems;
  expect(problems).toHaveLength(20);
  expect(problems[0]).toMatchObject({ path: 'k0', line: expect.any(Number) });
  expect(problems[19]).toEqual({ path: '', message: 'and 81 more problems' });
});

test('the largest useful manifest is valid', async () => {
  const numbers = (count: number) => Array.from({ length: count }, (_, number) => number);
  const digits = (number: number) => String(number).padStart(16, '0');
  const text = formatManifest(
    manifestInput('acme-shop', 0, {
      domains: numbers(20).map((number) => ({
        domain: `shop-${number}.example`,
        webTagId: 'GTM-ABC1234',
        token: `ct_${digits(number)}`,
      })),
      customDomains: numbers(20).map((number) => `metrics.shop-${number}.example`),
      previousLoaderTokens: numbers(10).map((number) => ({
        token: `lt_${digits(number)}`,
        until: '2026-12-01',
      })),
      modules: {
        cookie_restoration: { cookies: numbers(50).map((number) => `_cookie_${number}`) },
        server_proxy: { paths: numbers(50).map((number) => `/data/${number}`) },
      },
    }),
  );
  expect(await readManifest(text, 'acme-shop.yaml')).toMatchObject({ ok: true });
});

test('texts that take long are parsed outside the event loop, several at a time', async () => {
  const [{ text = '' } = {}] = hostileManifests().filter(({ what }) => what === 'empty comments');
  let done = 0;
  let ticks = 0;
  const parsing = Array.from({ length: 4 }, async () => {
    const parsed = await readManifest(text, 'acme-shop.yaml');
    done += 1;
    return parsed;
  });
  // A parser in this thread would have finished before the first tick.
  for (; done < parsing.length; ticks += 1) await new Promise(setImmediate);
  expect(ticks).toBeGreaterThan(10);
  for (const parsed of await Promise.all(parsing))
    expect(parsed).toEqual(parseManifest(text, 'acme-shop.yaml'));
});
