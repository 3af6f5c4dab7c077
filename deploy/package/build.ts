import { globSync } from 'node:fs';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import {
  bundleAnalytics,
  bundleControl,
  bundleEdge,
  bundleFront,
  bundleStage,
  bundleVerification,
} from '../../edge/bundle.ts';
import { bundleConsole } from '../../management/console/build.ts';
import { billOfMaterials } from './sbom.ts';

/**
 * `npm run build`, which `npm pack` calls: writes the package's `dist/`, which mirrors the sources file by file. Node
 * runs no TypeScript below `node_modules`. The workers are bundled here, so that an installation needs no esbuild.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DIST = join(ROOT, 'dist');

/** Files beside the code, which reads them at run time by their path. */
const ASSETS = [
  'gitops/**/*.hbs',
  'sites/local/demo/**/*.{hbs,css,js}',
  // The types of `tagyard/client`. The compiler copies no declarations.
  'base/client/generated/management-api.d.ts',
];

await rm(DIST, { recursive: true, force: true });
await mkdir(DIST);
await Promise.all([emit(), copyAssets(), bundleWorkers(), writeBill()]);

async function emit(): Promise<void> {
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');
  // One after another, because several configurations emit the same files; the later ones also write types.
  for (const config of [
    'tsconfig.json',
    'tsconfig.kit.json',
    'tsconfig.plugin.json',
    'tsconfig.client.json',
  ]) {
    await execa(process.execPath, [tsc, '-p', join(ROOT, 'deploy/package', config)], { stdio: 'inherit' });
  }
}

async function copyAssets(): Promise<void> {
  await Promise.all(
    globSync(ASSETS, { cwd: ROOT }).map((path) =>
      cp(join(ROOT, path), join(DIST, path), { recursive: true }),
    ),
  );
}

async function bundleWorkers(): Promise<void> {
  const [worker, front, control, analytics, verification, stage] = await Promise.all([
    bundleEdge(),
    bundleFront(),
    bundleControl(),
    bundleAnalytics(),
    bundleVerification(),
    bundleStage([]),
  ]);
  for (const [name, text] of Object.entries({ worker, front, control, analytics, verification, stage })) {
    await writeFile(join(DIST, `${name}.js`), text);
  }
  await writeFile(join(DIST, 'console.json'), await bundleConsole());
}

async function writeBill(): Promise<void> {
  await writeFile(join(DIST, 'sbom.json'), await billOfMaterials());
}
