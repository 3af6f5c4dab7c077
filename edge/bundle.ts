import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { refuseClashes } from './claims.ts';

/** The Workers compatibility date of the tests, of the embedded edge and of wrangler.jsonc (a test compares them). */
export const COMPATIBILITY_DATE = '2026-07-01';

const here = dirname(fileURLToPath(import.meta.url));

/** The bundles that wrangler uploads, in a folder that git ignores. */
const BUNDLE_PATH = resolve(here, '../dist/worker.js');
const VERIFICATION_BUNDLE_PATH = resolve(here, '../dist/verification.js');

/**
 * `import source from './loader.ts?page'` imports the text of a script for the visitor's browser: bundled, minified, as one
 * immediately invoked ES2018 function. The script's source is type-checked TypeScript; the worker contains a string.
 */
const pageScripts: Plugin = {
  name: 'page-scripts',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\?page$/ }, ({ path, resolveDir }) => ({
      path: resolve(resolveDir, path.replace(/\?page$/, '')),
      namespace: 'page',
    }));
    onLoad({ filter: /.*/, namespace: 'page' }, async ({ path }) => {
      const { outputFiles } = await build({
        entryPoints: [path],
        bundle: true,
        write: false,
        minify: true,
        format: 'iife',
        target: 'es2018',
        // Without tsconfig.json, whose `strict` would add "use strict" to every script.
        tsconfigRaw: {},
      });
      return { contents: outputFiles[0]?.text.trim() ?? '', loader: 'text', watchFiles: [path] };
    });
  },
};

/** Bundles a worker into the text of one ES module. The runtime provides the `cloudflare:*` modules. */
export async function bundleWorker(entryPoint: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entryPoint],
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    target: 'es2024',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:*'],
    plugins: [pageScripts],
    legalComments: 'none',
  });
  const [output] = outputFiles;
  if (output === undefined) throw new Error(`esbuild wrote no output for ${entryPoint}`);
  return output.text;
}

let edgeBundle: Promise<string> | undefined;

/** The edge worker's bundle, built once per process. Rejects if two plugins claim one route or one member of `/boot`. */
export function bundleEdge(): Promise<string> {
  edgeBundle ??= checkPlugins().then(() => bundleWorker(resolve(here, 'worker.ts')));
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
  frontBundle ??= bundleWorker(resolve(here, 'front/worker.ts'));
  return frontBundle;
}

let verificationBundle: Promise<string> | undefined;

/** The verification worker's bundle, built once per process. */
export function bundleVerification(): Promise<string> {
  verificationBundle ??= bundleWorker(resolve(here, 'verification/worker.ts'));
  return verificationBundle;
}

// `node edge/bundle.ts` writes both bundles; wrangler runs it before it deploys.
if (import.meta.main) {
  await mkdir(dirname(BUNDLE_PATH), { recursive: true });
  await Promise.all([
    writeFile(BUNDLE_PATH, await bundleEdge()),
    writeFile(VERIFICATION_BUNDLE_PATH, await bundleVerification()),
  ]);
}
