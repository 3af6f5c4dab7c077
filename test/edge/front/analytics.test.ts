import { Miniflare } from 'miniflare';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { bundleAnalytics, COMPATIBILITY_DATE } from '../../../edge/bundle.ts';

/** A worker that writes the points of a request, and answers with the error if a write throws. */
const WRITER = `export default {
  async fetch(request, env) {
    try {
      for (const point of await request.json()) env.ANALYTICS.writeDataPoint(point);
      return new Response('written');
    } catch (error) {
      return new Response(error.name + ': ' + error.message);
    }
  },
};`;

const received: unknown[] = [];
let runtime: Miniflare;
beforeAll(async () => {
  const module = (path: string, contents: string) => [{ type: 'ESModule' as const, path, contents }];
  runtime = new Miniflare({
    workers: [
      {
        name: 'writer',
        compatibilityDate: COMPATIBILITY_DATE,
        modules: module('writer.js', WRITER),
        wrappedBindings: { ANALYTICS: { scriptName: 'analytics', bindings: { DATASET: 'weather' } } },
      },
      {
        name: 'analytics',
        modules: module('analytics.js', await bundleAnalytics()),
        serviceBindings: {
          async HOST(request: Request) {
            received.push(...((await request.json()) as unknown[])); // front/analytics.ts sends a list
            return new Response(null, { status: 204 });
          },
        },
      },
    ],
  });
  await runtime.ready;
});
afterAll(() => runtime.dispose());
beforeEach(() => {
  received.length = 0;
});

async function write(points: readonly object[]): Promise<string> {
  const url = await runtime.ready;
  return await (await fetch(url, { method: 'POST', body: JSON.stringify(points) })).text();
}

test('points arrive at the host after the answer, with their time', async () => {
  const before = Date.now();
  expect(await write([{ indexes: ['oslo'], blobs: ['ü', null], doubles: [1.5] }, {}])).toBe('written');
  expect(await write([{ blobs: ['later'] }])).toBe('written');
  await expect.poll(() => received).toHaveLength(3);
  const time = expect.any(Number);
  expect(received).toEqual([
    { dataset: 'weather', time, index: 'oslo', blobs: ['ü', ''], doubles: [1.5] },
    { dataset: 'weather', time, index: '', blobs: [], doubles: [] },
    { dataset: 'weather', time, index: '', blobs: ['later'], doubles: [] },
  ]);
  expect((received[0] as { time: number }).time).toBeGreaterThanOrEqual(before);
});

const texts = (count: number, octets: number) => Array.from({ length: count }, () => 'é'.repeat(octets / 2));
test.each([
  ['an index of 96 octets', { indexes: ['é'.repeat(48)] }, 'written'],
  ['a longer index', { indexes: [`${'é'.repeat(48)}e`] }, 'exceeds 96 bytes'],
  ['two indexes', { indexes: ['a', 'b'] }, 'Maximum of 1 indexes'],
  ['20 blobs of 16 KB in all', { blobs: [...texts(19, 818), 'e'.repeat(842)] }, 'written'],
  ['20 blobs, one octet over 16 KB', { blobs: [...texts(19, 818), 'e'.repeat(843)] }, 'exceeds 16384 bytes'],
  ['21 blobs', { blobs: texts(21, 2) }, 'Maximum of 20 blobs'],
  ['20 doubles', { doubles: Array.from({ length: 20 }, () => 1) }, 'written'],
  ['21 doubles', { doubles: Array.from({ length: 21 }, () => 1) }, 'Maximum of 20 doubles'],
])('a point with %s: $2', async (_what, point, answer) => {
  const text = await write([point]);
  expect(text).toContain(answer);
  expect(text.startsWith('TypeError: ')).toBe(answer !== 'written');
});
