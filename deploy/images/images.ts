import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { installPackage, type Tarball } from '../package/pack.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));

export const TARGETS = ['management', 'provisioner', 'gateway', 'verification', 'embedded'] as const;
export type ImageTarget = (typeof TARGETS)[number];

/** The folder of the context that each target copies. */
const FOLDERS = {
  management: 'host',
  provisioner: 'host',
  gateway: 'host',
  verification: 'verification',
  embedded: 'whole',
} as const satisfies Record<ImageTarget, string>;

/** The name of an architecture in Node, by its name in images. */
export const CPUS = { amd64: 'x64', arm64: 'arm64' } as const;
export type Architecture = keyof typeof CPUS;

/**
 * Prepares the context of the Dockerfile in `folder`, for some of its targets: the package as it is installed on a
 * machine of that architecture.
 */
export async function imageContext(
  tarball: Tarball,
  folder: string,
  architecture: Architecture,
  targets: readonly ImageTarget[] = TARGETS,
): Promise<void> {
  const cpu = CPUS[architecture];
  await installPackage(tarball, join(folder, 'host'), { cpu, omitOptional: true });
  for (const name of ['Dockerfile', 'health.mjs']) await cp(join(HERE, name), join(folder, name));
  if (targets.every((target) => FOLDERS[target] === 'host')) return;
  await installPackage(tarball, join(folder, 'whole'), { cpu });
  const verification = join(folder, 'verification');
  await mkdir(verification);
  await cp(join(HERE, 'verification.capnp'), join(verification, 'config.capnp'));
  const installed = (path: string) => join(folder, 'whole/node_modules', path);
  await cp(installed('tagyard/dist/verification.js'), join(verification, 'verification.js'));
  const suffix = architecture === 'amd64' ? '64' : architecture;
  await cp(installed(`@cloudflare/workerd-linux-${suffix}/bin/workerd`), join(verification, 'workerd'));
}

interface BuildOptions {
  readonly target: ImageTarget;
  readonly tag: string;
  /** Default: the base that the Dockerfile names. */
  readonly base?: string | undefined;
  readonly architecture?: Architecture | undefined;
}

/**
 * Builds one image from a context and returns its size in bytes. The engine gets only the target's own folder of the
 * context, although it also builds the targets before that one in the Dockerfile: it builds them from empty folders.
 */
export async function buildImage(
  context: string,
  { target, tag, base, architecture }: BuildOptions,
): Promise<number> {
  const flags = ['--quiet', '--target', target, '--tag', tag];
  if (base !== undefined) flags.push('--build-arg', `BASE=${base}`);
  // An engine without experimental features refuses `--platform`, even for its own architecture.
  if (architecture !== undefined) flags.push('--platform', `linux/${architecture}`);
  const others = new Set(Object.values(FOLDERS).filter((folder) => folder !== FOLDERS[target]));
  await writeFile(join(context, '.dockerignore'), [...others].map((folder) => `${folder}/*\n`).join(''));
  await execa('docker', ['build', ...flags, context], { env: { DOCKER_BUILDKIT: '0' } });
  const { stdout } = await execa('docker', ['image', 'inspect', '--format', '{{.Size}}', tag]);
  return Number(stdout);
}
