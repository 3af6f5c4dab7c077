import { describe, expect, test } from 'vitest';
import { duplicateExports, unusedExports } from './architecture/exports.ts';
import { fileCycles, mutualFolders, upwardImports } from './architecture/graph.ts';
import { isRoot, MATRIX } from './architecture/matrix.ts';
import { arrowsIn, drawnArrows, drawRooms } from './architecture/picture.ts';
import { missingDocuments } from './architecture/references.ts';
import {
  imports,
  machinePaths,
  purity,
  signals,
  sleeps,
  undocumented,
  wideComments,
} from './architecture/rules.ts';
import { settingsIn, settingsOf } from './architecture/settings.ts';

/** A small tree that breaks (or keeps) one rule: these tests detect rules that can never fail. */
const tree = (path: string, ...lines: string[]) => [{ path, text: lines.join('\n') }];

describe('the matrix refuses', () => {
  test.each([
    ['plugins/a/index.ts', `import { b } from '../b/index.ts';`],
    ['plugins/a/index.ts', `import type { B } from '../../edge/http/errors.ts';`],
    ['plugins/a/index.ts', `import { registryDomain } from '../document.ts';`],
    ['plugins/a/index.ts', `import { createHash } from 'node:crypto';`],
    ['plugins/a/index.ts', `import { z } from 'zod';`],
    ['edge/gate.ts', `import { PLUGINS } from '../plugins/index.ts';`],
    ['edge/gate.ts', `import { planResources } from '../gitops/appliers/plan.ts';`],
    ['edge/gate.ts', `import { Router } from 'itty-router';`],
    ['edge/gate.ts', `export { readFileSync } from 'node:fs';`],
    ['edge/gate.ts', `const host = await import('./host.ts');`],
    ['sites/manifest/load.ts', `import { pass } from '../../gitops/pass/pass.ts';`],
    ['sites/manifest/load.ts', `import p from '../../plugins/server_proxy/index.ts';`],
    ['gitops/appliers/plan.ts', `import { readFile } from 'node:fs/promises';`],
    ['gitops/appliers/plan.ts', `import { runCommand } from './clients/command.ts';`],
    ['gitops/appliers/dns/render.ts', `import fastify from 'fastify';`],
    ['gitops/appliers/dns/apply.ts', `import { quote } from '../nginx/quote.ts';`],
    ['gitops/appliers/dns/apply.ts', `import { loop } from '../../loop.ts';`],
    ['gitops/appliers/dns/apply.ts', `type Loop = import('../../loop.ts').Loop;`],
    ['gitops/http/app.ts', `import { host } from '../../edge/host.ts';`],
    ['gitops/http/app.ts', `import { up } from '../cli/up.ts';`],
    ['gitops/cli/up.ts', `import '../main.ts';`],
    ['management/app.ts', `import { reconcile } from '../gitops/pass/pass.ts';`],
    ['management/app.ts', `import { report } from '../gitops/loop/reconciler.ts';`],
    ['management/app.ts', `import { errors } from '../edge/http/errors.ts';`],
    ['sites/demo/shop/app.ts', `import { app } from '../../../management/app.ts';`],
    ['elsewhere/app.ts', `import fastify from 'fastify';`],
  ])('%s: %s', (path, line) => {
    expect(imports(tree(path, line), MATRIX)).toHaveLength(1);
  });
});

describe('the matrix allows', () => {
  test.each([
    ['plugins/a/index.ts', `import { definePlugin } from '../contract.ts';`],
    ['plugins/a/index.ts', `import { z } from 'zod/mini';`],
    ['edge/worker.ts', `import { PLUGINS } from '../plugins/index.ts';`],
    ['edge/router.ts', `import { Router } from 'itty-router';`],
    ['edge/gate.ts', `import type { IRequest } from 'itty-router';`],
    ['edge/bundle.ts', `import { build } from 'esbuild';`],
    ['edge/front.ts', `import { WorkerEntrypoint } from 'cloudflare:workers';`],
    ['edge/host.ts', `import { Miniflare } from 'miniflare';`],
    ['gitops/appliers/plan.ts', `import type { Report } from './report.ts';`],
    ['sites/local/cloudflare/main.ts', `import { host } from '../../../edge/host.ts';`],
    ['management/app.ts', `import { REASONS } from '../gitops/report/report.ts';`],
    ['management/app.ts', `import { snippet } from '../plugins/custom_loader/snippet.ts';`],
  ])('%s: %s', (path, line) => {
    expect(imports(tree(path, line), MATRIX)).toEqual([]);
  });
});

describe('the rule', () => {
  test.each(['Date.now()', 'new Date()', 'Math.random()', 'process.env.HOME'])(
    'purity refuses %s',
    (code) => {
      expect(
        purity(tree('gitops/appliers/plan.ts', 'const one = 1;', `export const two = ${code};`)),
      ).toEqual([expect.stringContaining('gitops/appliers/plan.ts:2: ')]);
    },
  );

  test.each([
    `await new Promise((resolve) => setTimeout(resolve, 10));`,
    `await new Promise((done) => { setTimeout(() => done(1), 10); });`,
    `import { setTimeout as sleep } from 'node:timers/promises';`,
  ])('sleeps refuses %s', (code) => {
    expect(sleeps(tree('test/a.test.ts', code))).toHaveLength(1);
  });

  test.each([
    `setTimeout(() => response.end('late'), 10);`,
    `await new Promise((_, reject) => setTimeout(() => reject(new Error('deadline')), 10));`,
    `await new Promise((resolve) => server.listen(0, resolve));`,
  ])('sleeps allows %s', (code) => {
    expect(sleeps(tree('test/a.test.ts', code))).toEqual([]);
  });

  test.each(['home/anna/tagyard', 'work/main', 'root/.npm'])('machinePaths refuses /%s', (path) => {
    expect(machinePaths(tree('a.md', 'one', `see /${path}/x`))).toEqual([`a.md:2: names /${path}`]);
  });

  test('machinePaths allows a path in a URL and a path that every machine has', () => {
    const innocent = ['https://host.example/work/it', '/usr/sbin/nginx', './root/x', '/tmp/work/x'];
    expect(machinePaths(tree('a.md', ...innocent))).toEqual([]);
  });

  test('undocumented refuses a code that the README doesn’t show in backquotes', () => {
    expect(undocumented(['known', 'hidden'], 'codes: `known`, hidden')).toEqual([
      'README.md: `hidden` is missing',
    ]);
  });

  test.each([
    ['gitops/a.ts', 'export const home = process.env.TAGYARD_HOME;', 'TAGYARD_HOME'],
    ['management/env.ts', 'export const env = z.object({ AUTH_ISSUER: z.url() });', 'AUTH_ISSUER'],
    ['gitops/ports.ts', `export const request = { variable: 'EDGE_PORT' };`, 'EDGE_PORT'],
  ])('settingsOf finds the setting that %s reads', (path, text, name) => {
    expect(settingsOf(tree(path, text))).toEqual([name]);
  });

  test('settingsIn finds the explained settings, commented out or not', () => {
    expect(settingsIn('# A text with a = sign.\n# EDGE_PORT=8787\nHOST_NAME=a')).toEqual([
      'EDGE_PORT',
      'HOST_NAME',
    ]);
  });
});

/** Files of a small tree, as `[path, text]`. */
const forest = (...pairs: readonly (readonly [path: string, text: string])[]) =>
  pairs.map(([path, text]) => ({ path, text }));

describe('the graph refuses', () => {
  test('a cycle of imports, even of type imports only', () => {
    const cycle = forest(
      ['gitops/a.ts', `import type { B } from './b.ts';`],
      ['gitops/b.ts', `import { c } from './c.ts';`],
      ['gitops/c.ts', `export type A = import('./a.ts').A;`],
    );
    expect(fileCycles(cycle)).toEqual(['import cycle: gitops/a.ts, gitops/b.ts, gitops/c.ts']);
    expect(fileCycles(cycle.slice(0, 2))).toEqual([]);
  });

  test('two folders that import each other, unless one of them does so only in its composition root', () => {
    const folders = (root: string) =>
      forest(
        [`gitops/loop/${root}`, `import { a } from '../pass/a.ts';`],
        ['gitops/loop/b.ts', ''],
        ['gitops/pass/a.ts', `import type { B } from '../loop/b.ts';`],
      );
    expect(mutualFolders(folders('a.ts'), isRoot)).toEqual([
      expect.stringContaining('gitops/loop and gitops/pass import each other'),
    ]);
    expect(mutualFolders(folders('main.ts'), isRoot)).toEqual([]);
  });

  test('an import of a higher floor, of a neighbour on the same floor, and a file on no floor', () => {
    const floors = [
      { number: 0, rooms: ['gitops/base/**'] },
      { number: 1, rooms: ['gitops/manifest/**', 'gitops/clients/**'] },
    ];
    const arrow = (from: string, to: string) => forest([from, `import '../../${to}';`], [to, '']);
    expect(upwardImports(arrow('gitops/manifest/a.ts', 'gitops/base/b.ts'), floors)).toEqual([]);
    expect(upwardImports(arrow('gitops/base/a.ts', 'gitops/manifest/b.ts'), floors)).toHaveLength(1);
    expect(upwardImports(arrow('gitops/manifest/a.ts', 'gitops/clients/b.ts'), floors)).toHaveLength(1);
    expect(upwardImports(forest(['gitops/other/a.ts', '']), floors)).toEqual([
      'gitops/other/a.ts: on no floor',
    ]);
  });
});

describe('the exports', () => {
  test.each([
    `export const judge = 1;`,
    `export function judge() {}`,
    `export type judge = 1;`,
    `export interface judge {}`,
    `export class judge {}`,
    `const local = 1; export { local as judge };`,
    `export { judge } from './elsewhere.ts';`,
    `export const { judge } = source;`,
  ])('must have unique names: %s', (again) => {
    const twice = forest(['gitops/a.ts', 'export const judge = 0;'], ['gitops/b.ts', again]);
    expect(duplicateExports(twice)).toEqual(['judge is exported by gitops/a.ts, gitops/b.ts']);
  });

  test('may repeat the names that a contract asks for', () => {
    const repeated = forest(
      ['plugins/a/config.ts', 'export const config = 1; export default 1;'],
      ['plugins/b/config.ts', 'export const config = 2; export default 2;'],
    );
    expect(duplicateExports(repeated)).toEqual([]);
  });

  test.each([
    [`import { used } from './a.ts';`, []],
    [`import * as all from './a.ts';`, []],
    [`export { used } from './a.ts';`, []],
    [`type Used = import('./a.ts').used;`, []],
    [`const all = await import('./a.ts');`, []],
    [`import { other } from './a.ts';`, ['gitops/a.ts:1: exports used, which no other file imports']],
  ])('must have a user outside their file: %s', (user, violations) => {
    const file = forest(['gitops/a.ts', 'export const used = 1;']);
    expect(unusedExports(file, [...file, ...forest(['gitops/b.ts', user])])).toEqual(violations);
  });
});

test.each([
  ['// a line', 1],
  ['  /** a block', 1],
  [' * in a block', 1],
  ['const text = "code";', 0],
])('only a comment is refused for its width: %s', (line, found) => {
  expect(wideComments(tree('gitops/a.ts', line), line.length)).toEqual([]);
  expect(wideComments(tree('gitops/a.ts', line), line.length - 1)).toHaveLength(found);
});

test('a text that names a document is refused if the repository doesn’t have it', () => {
  const documents = new Set(['README.md', 'docs/http.md']);
  expect(missingDocuments(tree('gitops/a.ts', '// see docs/http.md and README.md'), documents)).toEqual([]);
  expect(missingDocuments(tree('docs/a.md', '[http](http.md)'), documents)).toEqual([]);
  expect(missingDocuments(tree('gitops/a.ts', '// see `http.md`'), documents)).toHaveLength(1);
});

test.each([
  'process.kill(pid);',
  `process.kill(-pid, 'SIGKILL');`,
  `execFileSync('kill', ['-9', pid]);`,
  `await execa('pkill', [name]);`,
])('a test that signals a process itself is refused: %s', (code) => {
  expect(signals(tree('test/a.test.ts', code))).toHaveLength(1);
  expect(signals(tree('test/a.test.ts', 'child.kill();'))).toEqual([]);
});

test('the picture has no arrow where a longer path exists, and no import within a room', async () => {
  const rooms = forest(
    ['gitops/loop/a.ts', `import '../pass/a.ts'; import '../base/a.ts'; import './b.ts';`],
    ['gitops/loop/b.ts', ''],
    ['gitops/pass/a.ts', `import '../base/a.ts';`],
    ['gitops/base/a.ts', ''],
  );
  const arrows = ['gitops/loop -> gitops/pass', 'gitops/pass -> gitops/base'];
  expect(drawnArrows(rooms)).toEqual(arrows);
  expect(arrowsIn(await drawRooms(rooms))).toEqual(arrows);
});
