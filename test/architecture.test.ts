import { describe, expect, test } from 'vitest';
import { MATRIX } from './architecture/matrix.ts';
import { imports, length, machinePaths, purity, sleeps, undocumented } from './architecture/rules.ts';
import { settingsIn, settingsOf } from './architecture/settings.ts';
import { files } from './architecture/tree.ts';

/** Each service's closed set of error codes: an object keyed by code in its `errors.ts`. */
const ERROR_SETS = [
  ['edge/http', 'EDGE_ERRORS'],
  ['edge/verification', 'VERIFICATION_ERRORS'],
  ['gitops', 'ERRORS'],
  ['management', 'ERRORS'],
] as const;

/** Variables that are not settings of Tagyard's. */
const FOREIGN: Readonly<Record<string, string>> = {
  NODE_EXTRA_CA_CERTS: 'Node’s own',
};

describe('the tree', () => {
  // Declarations are generated from other people's contracts.
  const sources = files('{edge,plugins,gitops,management,sites}/**/*.ts').filter(
    ({ path }) => !path.endsWith('.d.ts'),
  );
  const tests = files('test/**/*.ts');

  test('imports only what the matrix allows', () => {
    expect(sources.length).toBeGreaterThan(10);
    expect(imports(sources, MATRIX)).toEqual([]);
  });

  test('keeps planners and renderers pure', () => {
    const pure = sources.filter(({ path }) =>
      /\/(plan|desired|policy|render|quote|commands|documents)\.ts$/.test(path),
    );
    expect(pure.length).toBeGreaterThan(0);
    expect(purity(pure)).toEqual([]);
  });

  test('has no file of more than 300 lines', () => {
    const pages = files('{edge,plugins,gitops,management,sites}/**/*.{js,css,hbs}');
    expect(length([...sources, ...pages], 300)).toEqual([]);
  });

  test('sleeps in no test', () => {
    expect(sleeps(tests.filter(({ path }) => path !== 'test/support/eventually.ts'))).toEqual([]);
  });

  test.each(ERROR_SETS)('documents every error code of %s in the README', async (service, name) => {
    const { [name]: errors } = await import(new URL(`../${service}/errors.ts`, import.meta.url).href);
    const [readme] = files('README.md');
    expect(Object.keys(errors).length).toBeGreaterThan(0);
    expect(undocumented(Object.keys(errors), readme?.text ?? '')).toEqual([]);
  });

  test('explains in .env.example every setting that it reads, and no other', () => {
    const [example] = files('.env.example');
    const explained = settingsIn(example?.text ?? '');
    const everything = [...sources, ...tests, ...files('.ci/*', '**/*.sh')]
      .map(({ text }) => text)
      .join('\n');
    expect(
      settingsOf([...sources, ...tests]).filter((name) => !explained.includes(name) && !(name in FOREIGN)),
    ).toEqual([]);
    expect(explained.filter((name) => !new RegExp(`\\b${name}\\b`).test(everything))).toEqual([]);
  });

  test('names no path of one machine', () => {
    expect(machinePaths(files('**/*.{ts,js,json,md,yaml,yml,hbs,css,sh}', '.ci/*', '.env.example'))).toEqual(
      [],
    );
  });
});

/** A small tree that breaks (or keeps) one rule, so that a rule which can't fail is found out. */
const tree = (path: string, ...lines: string[]) => [{ path, text: lines.join('\n') }];

describe('the matrix refuses', () => {
  test.each([
    ['plugins/a/index.ts', `import { b } from '../b/index.ts';`],
    ['plugins/a/index.ts', `import type { B } from '../../edge/errors.ts';`],
    ['plugins/a/index.ts', `import { registryDomain } from '../document.ts';`],
    ['plugins/a/index.ts', `import { createHash } from 'node:crypto';`],
    ['plugins/a/index.ts', `import { z } from 'zod';`],
    ['edge/gate.ts', `import { PLUGINS } from '../plugins/index.ts';`],
    ['edge/gate.ts', `import { planResources } from '../gitops/appliers/plan.ts';`],
    ['edge/gate.ts', `import { Router } from 'itty-router';`],
    ['edge/gate.ts', `export { readFileSync } from 'node:fs';`],
    ['edge/gate.ts', `const host = await import('./host.ts');`],
    ['gitops/manifest/load.ts', `import { app } from '../app.ts';`],
    ['gitops/manifest/load.ts', `import p from '../../plugins/server_proxy/index.ts';`],
    ['gitops/appliers/plan.ts', `import { readFile } from 'node:fs/promises';`],
    ['gitops/appliers/plan.ts', `import { runCommand } from './clients/command.ts';`],
    ['gitops/appliers/dns/render.ts', `import fastify from 'fastify';`],
    ['gitops/appliers/dns/apply.ts', `import { quote } from '../nginx/quote.ts';`],
    ['gitops/appliers/dns/apply.ts', `import { loop } from '../../loop.ts';`],
    ['gitops/appliers/dns/apply.ts', `type Loop = import('../../loop.ts').Loop;`],
    ['gitops/http/app.ts', `import { host } from '../edge/host.ts';`],
    ['gitops/http/app.ts', `import { up } from './cli/up.ts';`],
    ['gitops/cli/up.ts', `import '../main.ts';`],
    ['management/app.ts', `import { reconcile } from '../gitops/pass/pass.ts';`],
    ['management/app.ts', `import { report } from '../gitops/report/report.ts';`],
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
    ['edge/front/worker.ts', `import { WorkerEntrypoint } from 'cloudflare:workers';`],
    ['edge/host.ts', `import { Miniflare } from 'miniflare';`],
    ['gitops/appliers/plan.ts', `import type { Report } from './report.ts';`],
    ['gitops/embedded/cloudflare/main.ts', `import { host } from '../../../edge/host.ts';`],
    ['management/app.ts', `import type { Report } from '../gitops/report/report.ts';`],
    ['management/app.ts', `import { snippet } from '../plugins/custom_loader/snippet.ts';`],
  ])('%s: %s', (path, line) => {
    expect(imports(tree(path, line), MATRIX)).toEqual([]);
  });
});

describe('a rule can fail', () => {
  test.each(['Date.now()', 'new Date()', 'Math.random()', 'process.env.HOME'])('purity: %s', (code) => {
    expect(purity(tree('gitops/appliers/plan.ts', 'const one = 1;', `export const two = ${code};`))).toEqual([
      expect.stringContaining('gitops/appliers/plan.ts:2: '),
    ]);
  });

  test('length: one line too many', () => {
    expect(length(tree('a.ts', '1', '2', '3'), 2)).toEqual(['a.ts: 3 lines, more than 2']);
    expect(length(tree('a.ts', '1', '2', ''), 2)).toEqual([]);
  });

  test.each([
    `await new Promise((resolve) => setTimeout(resolve, 10));`,
    `await new Promise((done) => { setTimeout(() => done(1), 10); });`,
    `import { setTimeout as sleep } from 'node:timers/promises';`,
  ])('sleeps: %s', (code) => {
    expect(sleeps(tree('test/a.test.ts', code))).toHaveLength(1);
  });

  test.each([
    `setTimeout(() => response.end('late'), 10);`,
    `await new Promise((_, reject) => setTimeout(() => reject(new Error('deadline')), 10));`,
    `await new Promise((resolve) => server.listen(0, resolve));`,
  ])('sleeps, but not: %s', (code) => {
    expect(sleeps(tree('test/a.test.ts', code))).toEqual([]);
  });

  test.each(['home/anna/tagyard', 'work/main', 'root/.npm'])('machine paths: %s', (path) => {
    expect(machinePaths(tree('a.md', 'one', `see /${path}/x`))).toEqual([`a.md:2: names /${path}`]);
  });

  test('machine paths, but not a path of a URL or of every machine', () => {
    const innocent = ['https://host.example/work/it', '/usr/sbin/nginx', './root/x', '/tmp/work/x'];
    expect(machinePaths(tree('a.md', ...innocent))).toEqual([]);
  });

  test('documentation: a code that the README does not show as one', () => {
    expect(undocumented(['known', 'hidden'], 'codes: `known`, hidden')).toEqual([
      'README.md: `hidden` is missing',
    ]);
  });

  test.each([
    ['gitops/a.ts', 'export const home = process.env.TAGYARD_HOME;', 'TAGYARD_HOME'],
    ['management/env.ts', 'export const env = z.object({ AUTH_ISSUER: z.url() });', 'AUTH_ISSUER'],
    ['gitops/ports.ts', `export const wish = { variable: 'EDGE_PORT' };`, 'EDGE_PORT'],
  ])('settings: %s reads one', (path, text, name) => {
    expect(settingsOf(tree(path, text))).toEqual([name]);
  });

  test('settings: explained ones, commented out or not', () => {
    expect(settingsIn('# A text with a = sign.\n# EDGE_PORT=8787\nHOST_NAME=a')).toEqual([
      'EDGE_PORT',
      'HOST_NAME',
    ]);
  });
});
