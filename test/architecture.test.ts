import { describe, expect, test } from 'vitest';
import { EDGE_ERRORS } from '../edge/http/errors.ts';
import { VERIFICATION_ERRORS } from '../edge/verification/errors.ts';
import { PROVISIONER_ERRORS } from '../gitops/http/errors.ts';
import { MANAGEMENT_ERRORS } from '../management/http/errors.ts';
import { missingFolders, wrongFloors } from './architecture/document.ts';
import { duplicateExports, unusedExports } from './architecture/exports.ts';
import { FLOORS } from './architecture/floors.ts';
import { fileCycles, mutualFolders, upwardImports } from './architecture/graph.ts';
import { isRoot, MATRIX } from './architecture/matrix.ts';
import { arrowsIn, drawnArrows } from './architecture/picture.ts';
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
import { runbooksReference } from './architecture/runbooks-reference.ts';
import { settingsIn, settingsOf } from './architecture/settings.ts';
import { settingsReference } from './architecture/settings-reference.ts';
import { deploySources, files, sources as productSources } from './architecture/tree.ts';

/** Each service's closed set of errors, by code. */
const ERROR_SETS = [
  ['the edge', EDGE_ERRORS],
  ['the verification worker', VERIFICATION_ERRORS],
  ['the provisioner', PROVISIONER_ERRORS],
  ['the management API', MANAGEMENT_ERRORS],
] as const;

/** Variables that are not settings of Tagyard, and whose they are. */
const FOREIGN: Readonly<Record<string, string>> = {
  FORCE_COLOR: 'of many programs',
  NODE_COMPILE_CACHE: 'Node’s own',
  NODE_EXTRA_CA_CERTS: 'Node’s own',
  XDG_CACHE_HOME: 'of the XDG Base Directory Specification',
};

describe('the tree', () => {
  const product = productSources();
  const sources = [...product, ...deploySources()];
  const tests = files('test/**/*.ts');
  const configs = files('*.ts');
  const texts = files(
    '**/*.{ts,tsx,js,mjs,css,hbs,html,md,yaml,yml,jsonc,sh,tpl,txt,capnp}',
    '{sites/schema,deploy/chart/values.schema,package}.json',
    '**/Dockerfile',
    '.ci/*',
    '.env.example',
  );

  test('imports only what the matrix allows', () => {
    expect(sources.length).toBeGreaterThan(10);
    expect(imports(sources, MATRIX)).toEqual([]);
  });

  test('has no import cycle, type imports included', () => {
    expect(fileCycles([...sources, ...tests])).toEqual([]);
  });

  test('has no two folders that import each other', () => {
    expect(mutualFolders(sources, isRoot)).toEqual([]);
  });

  test.each(Object.entries(FLOORS))('has no import that runs upward in %s', (part, floors) => {
    const own = sources.filter(({ path }) => path.startsWith(`${part}/`));
    expect(own.length).toBeGreaterThan(10);
    expect(upwardImports(own, floors)).toEqual([]);
  });

  test('exports each name once', () => {
    expect(duplicateExports(sources)).toEqual([]);
  });

  test('exports only what another file imports, tests and their support included', () => {
    const all = [...sources, ...tests];
    expect(unusedExports(all, [...all, ...configs])).toEqual([]);
  });

  test('keeps planners and renderers pure', () => {
    const pure = sources.filter(({ path }) =>
      /\/(plan|desired|guards|policy|render|quote|commands|documents)\.ts$/.test(path),
    );
    expect(pure.length).toBeGreaterThan(0);
    expect(purity(pure)).toEqual([]);
  });

  test('has no comment that runs far past the margin', () => {
    expect(wideComments([...sources, ...tests], 130)).toEqual([]);
  });

  test('sleeps in no test', () => {
    expect(sleeps(tests.filter(({ path }) => path !== 'test/support/eventually.ts'))).toEqual([]);
  });

  test('signals a process from one place only', () => {
    expect(signals(tests.filter(({ path }) => !SIGNALLERS.includes(path)))).toEqual([]);
  });

  test('refers only to documents that it has', () => {
    const documents = new Set(files('**/*.md').map(({ path }) => path));
    const own = texts.filter(({ path }) => !OF_OTHERS.some((pattern) => pattern.test(path)));
    expect(missingDocuments(own, documents)).toEqual([]);
  });

  test('has exactly the arrows that the picture of docs/architecture.md shows', () => {
    const [picture] = files('docs/architecture.svg');
    // `npm run generate:picture` draws it anew.
    expect(arrowsIn(picture?.text ?? '')).toEqual(drawnArrows(product));
  });

  describe('in docs/architecture.md', () => {
    const [document] = files('docs/architecture.md');
    const text = document?.text ?? '';

    test.each(Object.entries(FLOORS))('has the floors of %s', (part, floors) => {
      expect(wrongFloors(text, part, floors)).toEqual([]);
    });

    test('has every folder', () => {
      const paths = [...sources, ...tests].map(({ path }) => path);
      expect(missingFolders(text, paths)).toEqual([]);
    });
  });

  test.each(ERROR_SETS)('documents every error code of %s in the README', (_service, errors) => {
    const [readme] = files('README.md');
    expect(Object.keys(errors).length).toBeGreaterThan(0);
    expect(undocumented(Object.keys(errors), readme?.text ?? '')).toEqual([]);
  });

  test('has in docs/runbooks.md what `npm run generate:runbooks` writes', () => {
    const [runbooks] = files('docs/runbooks.md');
    expect(runbooks?.text).toBe(runbooksReference());
  });

  describe('in docs/reference/settings.md', () => {
    const [reference] = files('docs/reference/settings.md');
    const explained = [...(reference?.text ?? '').matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name ?? '');

    test('is what `npm run generate:settings` writes', () => {
      expect(reference?.text).toBe(settingsReference());
    });

    test('has every setting that it reads, once, and no other', () => {
      expect(explained.filter((name, index) => explained.indexOf(name) !== index)).toEqual([]);
      const read = settingsOf([...sources, ...tests]).filter((name) => !(name in FOREIGN));
      expect(read.filter((name) => !explained.includes(name))).toEqual([]);
      const everything = [...sources, ...tests, ...files('.ci/*', '**/*.sh')]
        .filter(({ path }) => !path.startsWith('test/architecture/'))
        .map(({ text: source }) => source)
        .join('\n');
      expect(explained.filter((name) => !new RegExp(`\\b${name}\\b`).test(everything))).toEqual([]);
    });

    test('has those of .env.example, which are at most forty', () => {
      const [example] = files('.env.example');
      const decided = settingsIn(example?.text ?? '');
      expect(decided.length).toBeLessThanOrEqual(40);
      expect(decided.filter((name) => !explained.includes(name))).toEqual([]);
    });
  });

  test('names no path that exists on one machine only', () => {
    expect(
      machinePaths(files('**/*.{ts,tsx,js,json,md,yaml,yml,hbs,css,sh}', '.ci/*', '.env.example')),
    ).toEqual([]);
  });
});

/** The helper that checks a pid before it signals, and the rule's own test. */
const SIGNALLERS = ['test/support/signal.ts', 'test/architecture-rules.test.ts'];

/** Files that are recorded, generated from others' contracts, or that name missing documents on purpose. */
const OF_OTHERS = [
  /^test\/support\/cloudflare\/pages\//,
  /\.d\.ts$/,
  /^CHANGELOG\.md$/,
  /^test\/architecture-(?:rules|references)\.test\.ts$/,
];
