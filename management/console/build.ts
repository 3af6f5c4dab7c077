import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Metafile, OutputFile } from 'esbuild';
import { type Bundle, cachedBundle } from '../../edge/bundle-cache.ts';
import { loadEsbuild } from '../../edge/esbuild.ts';

/** The package contains the built console. A checkout bundles it from the sources. */
const IS_PACKAGE = import.meta.url.endsWith('.js');
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The path below which the console's files are served. */
export const ASSETS_PATH = '/console/assets';

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

/** A file of the console: its content and its compressed forms in base64. */
interface ConsoleFile {
  readonly type: string;
  readonly plain: string;
  readonly gzip: string;
  readonly br: string;
}

/** The console's files by name; `index.html` is the page, the others have a hash in their names. */
export type ConsoleFiles = Readonly<Record<string, ConsoleFile>>;

/** The console as the text that the package and the cache keep. */
export async function bundleConsole(): Promise<string> {
  return IS_PACKAGE
    ? await readFile(resolve(ROOT, 'console.json'), 'utf8')
    : await cachedBundle('console', makeConsole);
}

export function parseConsole(text: string): ConsoleFiles {
  return JSON.parse(text) as ConsoleFiles; // `makeConsole` wrote it
}

async function makeConsole(): Promise<Bundle> {
  const { build } = await loadEsbuild();
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['main.tsx', 'style.css', 'icon.svg'].map((name) => `management/console/app/${name}`),
    outdir: 'dist/console',
    publicPath: ASSETS_PATH,
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    write: false,
    metafile: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    // Packages made for React may read `process`; browsers have none.
    define: { 'process.env.NODE_ENV': '"production"' },
    loader: { '.svg': 'copy' },
    tsconfigRaw: {},
    legalComments: 'none',
  });
  const files = await Promise.all([...outputFiles.map(entryOf), pageOf(metafile)]);
  return {
    text: JSON.stringify(Object.fromEntries(files)),
    inputs: ['management/console/build.ts', ...Object.keys(metafile.inputs)],
  };
}

async function entryOf({ path, contents }: OutputFile): Promise<[string, ConsoleFile]> {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return [name, await fileOf(name, Buffer.from(contents))];
}

async function pageOf({ outputs }: Metafile): Promise<[string, ConsoleFile]> {
  const built = (input: string) => {
    const found = Object.entries(outputs).find(
      ([path, { entryPoint, inputs }]) =>
        entryPoint?.endsWith(input) || (path.endsWith('.svg') && Object.keys(inputs)[0]?.endsWith(input)),
    );
    if (found === undefined) throw new Error(`esbuild wrote no output for ${input}`);
    return { url: `${ASSETS_PATH}/${nameOf(found[0])}`, imports: found[1].imports };
  };
  const main = built('app/main.tsx');
  const early = main.imports.filter(({ kind }) => kind === 'import-statement');
  const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Tagyard</title>
<link rel="icon" type="image/svg+xml" href="${built('app/icon.svg').url}">
<link rel="stylesheet" href="${built('app/style.css').url}">
${early.map(({ path }) => `<link rel="modulepreload" href="${ASSETS_PATH}/${nameOf(path)}">\n`).join('')}<script type="module" src="${main.url}"></script>
</head>
<body>
<div id="app"></div>
<noscript>The console needs JavaScript. The API and the command line do all that it does.</noscript>
</body>
</html>
`;
  return ['index.html', await fileOf('index.html', Buffer.from(page))];
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

async function fileOf(name: string, content: Buffer): Promise<ConsoleFile> {
  const options = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
  const [zipped, packed] = await Promise.all([
    promisify(gzip)(content, { level: 9 }),
    promisify(brotliCompress)(content, options),
  ]);
  return {
    type: TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
    plain: content.toString('base64'),
    gzip: zipped.toString('base64'),
    br: packed.toString('base64'),
  };
}
