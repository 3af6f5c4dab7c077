import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type * as Esbuild from 'esbuild';
import { type Bundle, cachedBundle } from './bundle-cache.ts';
import { refuseClashes } from './claims.ts';
import { loadEsbuild } from './esbuild.ts';

/** The Workers compatibility date of the tests, of the embedded edge and of wrangler.jsonc (a test compares them). */
export const COMPATIBILITY_DATE = '2026-07-01';

const here = dirname(fileURLToPath(import.meta.url));
const ROOT = resolve(here, '..');

/** The package contains the bundles, so that it needs no esbuild. A checkout bundles the sources. */
const IS_PACKAGE = import.meta.url.endsWith('.js');

/**
 * The folder of the bundles, `dist`. A checkout writes them to it, and wrangler uploads them; git ignores the folder.
 */
const BUILT = resolve(here, IS_PACKAGE ? '..' : '../dist');

/** In the package, the worker of plugins' tests (the stage) in one module; in a checkout, its sources. */
const STAGE = IS_PACKAGE ? resolve(BUILT, 'stage.js') : resolve(here, 'stage/worker.ts');

/**
 * `import source from './loader.ts?page'` imports the text of a script for the visitor's browser: bundled, minified, as one
 * immediately invoked ES2018 function. The script's source is type-checked TypeScript; the worker contains a string.
 * `inputs` gets the files of all scripts.
 */
const pageScripts = ({ build }: typeof Esbuild, inputs: string[]): Esbuild.Plugin => ({
  name: 'page-scripts',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\?page$/ }, ({ path, resolveDir }) => ({
      path: resolve(resolveDir, path.replace(/\?page$/, '')),
      namespace: 'page',
    }));
    onLoad({ filter: /.*/, namespace: 'page' }, async ({ path }) => {
      const { outputFiles, metafile } = await build({
        absWorkingDir: ROOT,
        metafile: true,
        entryPoints: [path],
        bundle: true,
        write: false,
        minify: true,
        format: 'iife',
        target: 'es2018',
        // Without tsconfig.json, whose `strict` would add "use strict" to every script.
        tsconfigRaw: {},
      });
      inputs.push(...Object.keys(metafile.inputs));
      return { contents: outputFiles[0]?.text.trim() ?? '', loader: 'text', watchFiles: [path] };
    });
  },
});

/** Bundles a worker into the text of one ES module. The runtime provides the `cloudflare:*` modules. */
export async function bundleWorker(entryPoint: string): Promise<string> {
  return (await makeBundle(entryPoint)).text;
}

/** A stage's worker with added plugins: the default export of each module is a plugin or a list of plugins. */
export async function bundleStage(plugins: readonly string[]): Promise<string> {
  if (plugins.length === 0) return IS_PACKAGE ? await readFile(STAGE, 'utf8') : await bundleWorker(STAGE);
  const path = (file: string) => JSON.stringify(file);
  const contents = [
    `import StageWorker from ${path(STAGE)};`,
    ...plugins.map((file, index) => `import plugin${index} from ${path(file)};`),
    `const added = [${plugins.map((_file, index) => `plugin${index}`).join()}].flat();`,
    'StageWorker.plugins = [...StageWorker.plugins, ...added];',
    'export default StageWorker;',
  ].join('\n');
  return (await makeBundle({ stdin: { contents, resolveDir: ROOT } })).text;
}

async function makeBundle(entry: string | Pick<Esbuild.BuildOptions, 'stdin'>): Promise<Bundle> {
  const inputs: string[] = [];
  const esbuild = await loadEsbuild();
  const { outputFiles, metafile } = await esbuild.build({
    ...(typeof entry === 'string' ? { entryPoints: [entry] } : entry),
    absWorkingDir: ROOT,
    metafile: true,
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    target: 'es2024',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:*', 'cloudflare-internal:*'],
    plugins: [pageScripts(esbuild, inputs)],
    legalComments: 'none',
  });
  const [output] = outputFiles;
  if (output === undefined)
    throw new Error(`esbuild wrote no output for ${typeof entry === 'string' ? entry : 'a stage'}`);
  // Without the page scripts (`page:…`): `inputs` has their files already.
  inputs.push(...Object.keys(metafile.inputs).filter((path) => !path.startsWith('page:')));
  return { text: output.text, inputs };
}

/** The package's bundle; in a checkout, the kept one, or one made by `bundle` if the sources have changed. */
async function ready(name: string, bundle: () => Promise<Bundle>): Promise<string> {
  return IS_PACKAGE ? await readFile(resolve(BUILT, name), 'utf8') : await cachedBundle(name, bundle);
}

let edgeBundle: Promise<string> | undefined;

/** The edge worker's bundle, built once per process. In a checkout, rejects if plugins clash (see `refuseClashes`). */
export function bundleEdge(): Promise<string> {
  edgeBundle ??= ready('worker.js', () => checkPlugins().then(() => makeBundle(resolve(here, 'worker.ts'))));
  return edgeBundle;
}

/** Bundles the list before importing it, because Node can't import `?page`. */
async function checkPlugins(): Promise<void> {
  const list = await bundleWorker(resolve(here, '../plugins/index.ts'));
  const { PLUGINS }: { PLUGINS: Parameters<typeof refuseClashes>[0] } = await import(
    `data:text/javascript,${encodeURIComponent(list)}`
  );
  refuseClashes(PLUGINS);
}

let frontBundle: Promise<string> | undefined;

/** The bundle of the embedded edge's front, built once per process. */
export function bundleFront(): Promise<string> {
  frontBundle ??= ready('front.js', () => makeBundle(resolve(here, 'front/worker.ts')));
  return frontBundle;
}

let controlBundle: Promise<string> | undefined;

/** The bundle of the embedded edge's control, built once per process. */
export function bundleControl(): Promise<string> {
  controlBundle ??= ready('control.js', () => makeBundle(resolve(here, 'front/control.ts')));
  return controlBundle;
}

let analyticsBundle: Promise<string> | undefined;

/** The bundle of the embedded edge's binding of Analytics Engine, built once per process. */
export function bundleAnalytics(): Promise<string> {
  analyticsBundle ??= ready('analytics.js', () => makeBundle(resolve(here, 'front/analytics.ts')));
  return analyticsBundle;
}

let verificationBundle: Promise<string> | undefined;

/** The verification worker's bundle, built once per process. */
export function bundleVerification(): Promise<string> {
  verificationBundle ??= ready('verification.js', () => makeBundle(resolve(here, 'verification/worker.ts')));
  return verificationBundle;
}

// `node edge/bundle.ts` writes the bundles; wrangler runs it before it deploys. In the package they exist.
if (import.meta.main && !IS_PACKAGE) {
  await mkdir(BUILT, { recursive: true });
  const write = async (name: string, text: Promise<string>) => writeFile(resolve(BUILT, name), await text);
  await Promise.all([
    write('worker.js', bundleEdge()),
    write('verification.js', bundleVerification()),
    write('front.js', bundleFront()),
    write('control.js', bundleControl()),
    write('analytics.js', bundleAnalytics()),
  ]);
}
