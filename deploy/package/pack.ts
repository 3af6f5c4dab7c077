import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { z } from 'zod';
import { projectOf } from './shipped.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** What `npm pack` needs of this tree. */
const PARTS = [
  'base',
  'deploy',
  'docs/reference/settings.md',
  'docs/runbooks.md',
  'wrangler.jsonc',
  'edge',
  'gitops',
  'management',
  'plugins',
  'sites',
  '.env.example',
  'LICENSE',
  'README.md',
  'package-lock.json',
  'package.json',
  'tsconfig.json',
];

/** Puts this Node first in the PATH, so that npm's scripts and the package's command run on it. */
export const THIS_NODE = {
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  npm_config_loglevel: 'error',
};

export interface Tarball {
  readonly path: string;
  readonly name: string;
  /** The size of the compressed file. */
  readonly bytes: number;
}

const packed = z.tuple([z.object({ filename: z.string(), size: z.number() })]);

/** `npm pack` in a copy of the tree: the tree's own `dist/` may be in use. */
export async function packTree(into: string): Promise<Tarball> {
  const tree = join(into, 'tree');
  for (const part of PARTS) await cp(join(ROOT, part), join(tree, part), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
  const npm = execa({ cwd: tree, env: THIS_NODE });
  // The build runs separately, because otherwise its output would be in the JSON.
  await npm`npm run build --silent`;
  const { stdout } = await npm`npm pack --json --ignore-scripts --pack-destination ${into}`;
  const [{ filename, size }] = packed.parse(JSON.parse(stdout));
  return { path: join(into, filename), name: filename, bytes: size };
}

interface InstallOptions {
  /** Omits the embedded parts. */
  readonly omitOptional?: boolean;
  /** The architecture of the machine that will run it, in Node's terms; default: this machine's. */
  readonly cpu?: string;
}

/**
 * Installs the tarball in an empty folder, as `npm install <tarball>` does, but with the versions of this tree's lock
 * file, which npm has in its cache.
 */
export async function installPackage(
  tarball: Tarball,
  folder: string,
  { omitOptional = false, cpu }: InstallOptions = {},
): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, text] of Object.entries(projectOf(tarball.path)))
    await writeFile(join(folder, name), text);
  const flags = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund'];
  if (omitOptional) flags.push('--omit=optional');
  if (cpu !== undefined) flags.push(`--cpu=${cpu}`, '--os=linux');
  await execa('npm', ['ci', ...flags], { cwd: folder, env: THIS_NODE });
}
