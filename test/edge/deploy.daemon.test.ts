import { globSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundleEdge, COMPATIBILITY_DATE } from '../../edge/bundle.ts';
import { wrangler } from '../support/wrangler.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFile(join(root, path), 'utf8');

/** Set by `wrangler secret put`, not in a file. */
const SECRETS = ['HOP_SECRET', 'HOP_SECRET_PREVIOUS', 'INGEST_SECRET'];

let home: string;
let printed: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'tagyard-wrangler-'));
  printed = await wrangler(root, home, 'deploy', '--dry-run', '--outdir', join(home, 'out'));
});
afterAll(() => rm(home, { recursive: true, force: true }));

describe('wrangler deploy --dry-run', () => {
  test('would upload the same bundle that the embedded edge runs', async () => {
    expect(printed).toContain('--dry-run: exiting now.');
    expect(await readFile(join(home, 'out', 'worker.js'), 'utf8')).toBe(await bundleEdge());
  });

  test('binds exactly the variables that the worker reads', async () => {
    const bound = [...printed.matchAll(/\benv\.([A-Z_]+) \(/g)].map(([, name]) => name);
    const [, environment = ''] = /^interface Env \{(.*?)^\}/ms.exec(await read('edge/worker.ts')) ?? [];
    const fields = [...environment.matchAll(/^ {2}readonly ([A-Z_]+)\??:/gm)].map(([, name]) => name);
    // Read as text, because Node can't import a plugin with a page script.
    const plugins = await Promise.all(globSync('plugins/*/index.ts', { cwd: root }).map(read));
    const declared = plugins.flatMap(
      (text) => /\bvariables: \[(.*?)\]/s.exec(text)?.[1]?.match(/[A-Z_]+/g) ?? [],
    );
    expect([fields, declared]).toEqual([
      expect.arrayContaining(['ROUTES']),
      expect.arrayContaining(['DETECTION_PATH']),
    ]);
    expect(bound.toSorted()).toEqual(
      [...fields, ...declared].filter((name) => name !== undefined && !SECRETS.includes(name)).toSorted(),
    );
  });
});

test('the compatibility date is the same in wrangler.jsonc and in the embedded edge', async () => {
  expect(COMPATIBILITY_DATE).toMatch(/^\d{4}-\d\d-\d\d$/);
  expect(await read('wrangler.jsonc')).toContain(`"compatibility_date": "${COMPATIBILITY_DATE}"`);
});

test('wrangler needs the embedded edge’s version of Miniflare, so both run the same workerd', async () => {
  const versionOf = async (name: string) => {
    const manifest = JSON.parse(await read(`node_modules/${name}/package.json`));
    return { version: manifest.version, needs: manifest.dependencies?.miniflare };
  };
  expect((await versionOf('wrangler')).needs).toBe((await versionOf('miniflare')).version);
});
