import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { refuseClashes } from './claims.ts';

/** The one Workers compatibility date: of the tests, of the embedded edge and (a test compares) of wrangler.jsonc. */
export const COMPATIBILITY_DATE = '2026-07-01';

const here = dirname(fileURLToPath(import.meta.url));

/** The bundle that Cloudflare gets, beside the sources in a folder that git ignores. */
export const BUNDLE_PATH = resolve(here, '../dist/worker.js');
export const VERIFICATION_BUNDLE_PATH = resolve(here, '../dist/verification.js');

/**
 * `import source from './loader.ts?page'` gives the text of a script for the visitor's browser: bundled, minified, as
 * one ES2018 function that runs at once. So the page's code is type-checked TypeScript and the worker holds a string.
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
        // Else its strictness, which the compiler checks, is said again in each script.
        tsconfigRaw: {},
      });
      return { contents: outputFiles[0]?.text.trim() ?? '', loader: 'text', watchFiles: [path] };
    });
  },
};

/** Bundles a worker into the text of one ES module. `cloudflare:*` modules come from the runtime. */
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
  if (output === undefined) throw new Error(`esbuild made no output of ${entryPoint}`);
  return output.text;
}

let edgeBundle: Promise<string> | undefined;

/** The edge worker's bundle, made once a process. Rejects where two plugins claim one method and path. */
export function bundleEdge(): Promise<string> {
  edgeBundle ??= checkPlugins().then(() => bundleWorker(resolve(here, 'worker.ts')));
  return edgeBundle;
}

/** The list is bundled to be read, because Node knows nothing of `?page`. */
async function checkPlugins(): Promise<void> {
  const list = await bundleWorker(resolve(here, '../plugins/index.ts'));
  const { PLUGINS }: { PLUGINS: Parameters<typeof refuseClashes>[0] } = await import(
    `data:text/javascript,${encodeURIComponent(list)}`
  );
  refuseClashes(PLUGINS);
}

let frontBundle: Promise<string> | undefined;

/** The bundle of the embedded edge's front, made once a process. */
export function bundleFront(): Promise<string> {
  frontBundle ??= bundleWorker(resolve(here, 'front/worker.ts'));
  return frontBundle;
}

let verificationBundle: Promise<string> | undefined;

/** The verification worker's bundle, made once a process. */
export function bundleVerification(): Promise<string> {
  verificationBundle ??= bundleWorker(resolve(here, 'verification/worker.ts'));
  return verificationBundle;
}

// `node edge/bundle.ts`: what wrangler runs before it deploys, either worker.
if (import.meta.main) {
  await mkdir(dirname(BUNDLE_PATH), { recursive: true });
  await Promise.all([
    writeFile(BUNDLE_PATH, await bundleEdge()),
    writeFile(VERIFICATION_BUNDLE_PATH, await bundleVerification()),
  ]);
}
