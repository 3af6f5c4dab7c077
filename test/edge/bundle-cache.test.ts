import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { cachedBundle } from '../../edge/bundle-cache.ts';

let dir: string;
let source: string;
let builds: number;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tagyard-bundles-'));
  source = join(dir, 'source.ts');
  builds = 0;
  await mkdir(join(dir, 'cache'));
  await change('1');
});
afterEach(() => rm(dir, { recursive: true }));

/** Writes the source with a time a minute ago, because a bundle isn't kept if its source changed during the build. */
async function change(text: string, at = Date.now() / 1000 - 60): Promise<void> {
  await writeFile(source, text);
  await utimes(source, at, at);
}

const build = async () => {
  builds += 1;
  return { text: `bundle ${builds}`, inputs: [source] };
};
const cached = (env: NodeJS.ProcessEnv = { NODE_COMPILE_CACHE: join(dir, 'cache') }) =>
  cachedBundle('worker.js', build, env);

test('an unchanged source is bundled once', async () => {
  expect([await cached(), await cached()]).toEqual(['bundle 1', 'bundle 1']);
});

test.each([
  ['changed', () => change('22')],
  ['changed, with the previous size', () => change('3')],
  ['removed', () => rm(source)],
])('after a source was %s, the bundle is built again', async (_how, disturb) => {
  await cached();
  await disturb();
  expect(await cached()).toBe('bundle 2');
});

test('a source that changes during its build is bundled again', async () => {
  await change('2', Date.now() / 1000 + 60);
  await cached();
  expect(await cached()).toBe('bundle 2');
});

test('a damaged file is replaced', async () => {
  await cached();
  const folder = join(dir, 'cache', 'workers');
  const [name = ''] = await readdir(folder);
  await writeFile(join(folder, name), '{"text":');
  expect([await cached(), await cached()]).toEqual(['bundle 2', 'bundle 2']);
});

test.each([
  ['without a folder', {}],
  ['where the cache is off', { NODE_COMPILE_CACHE: '/proc/none', NODE_DISABLE_COMPILE_CACHE: '1' }],
  ['in a folder that can’t be written', { NODE_COMPILE_CACHE: '/proc/none' }],
])('%s, each call bundles', async (_where, env) => {
  expect([await cached(env), await cached(env)]).toEqual(['bundle 1', 'bundle 2']);
});
