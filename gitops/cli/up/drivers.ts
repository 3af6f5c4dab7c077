import { execa } from 'execa';
import { isDockerUsable } from '../../clients/docker.ts';
import { CliError } from '../output/cli-error.ts';

/** What runs on what, with the reason that is printed. */
export interface Driver<Name extends string> {
  readonly name: Name;
  readonly reason: string;
}

export interface Drivers {
  readonly database: Driver<'postgresql' | 'pglite'>;
  readonly dns: Driver<'cloudflare-emulator'>;
  readonly edge: Driver<'workerd'>;
  readonly proxy: Driver<'nginx' | 'embedded'> & { readonly bin?: string };
  readonly containers: Driver<'docker' | 'process'>;
}

/** Looks at the machine, unless `TAGYARD_PROXY` or `TAGYARD_CONTAINERS` asks for one; asking for what isn't there is an error. */
export async function chooseDrivers(env: NodeJS.ProcessEnv): Promise<Drivers> {
  const [proxy, containers] = await Promise.all([
    chooseProxy(asked(env, 'TAGYARD_PROXY', ['nginx', 'embedded'])),
    chooseContainers(asked(env, 'TAGYARD_CONTAINERS', ['docker', 'process'])),
  ]);
  return {
    database: env.DATABASE_URL
      ? { name: 'postgresql', reason: 'DATABASE_URL is set' }
      : { name: 'pglite', reason: 'in-process PostgreSQL, no DATABASE_URL is set' },
    dns: { name: 'cloudflare-emulator', reason: 'Cloudflare’s API answered on this machine' },
    edge: { name: 'workerd', reason: 'the worker as it is deployed, in Cloudflare’s own runtime' },
    proxy,
    containers,
  };
}

async function chooseProxy(wanted: 'nginx' | 'embedded' | null): Promise<Drivers['proxy']> {
  if (wanted === 'embedded') return { name: 'embedded', reason: 'TAGYARD_PROXY asks for it' };
  const found = await findNginx();
  if (found !== null)
    return {
      name: 'nginx',
      bin: found.bin,
      reason: `${found.version} is installed; it runs under a private prefix`,
    };
  if (wanted === 'nginx')
    throw new CliError('TAGYARD_PROXY=nginx, but nginx is not installed; install it or unset the variable');
  return { name: 'embedded', reason: 'nginx is not installed' };
}

/** nginx often stands in sbin, which is on no user's PATH. */
async function findNginx(): Promise<{ bin: string; version: string } | null> {
  for (const bin of ['nginx', '/usr/sbin/nginx', '/usr/local/sbin/nginx']) {
    const result = await execa(bin, ['-v'], { reject: false, timeout: 5_000 });
    if (!result.failed) return { bin, version: result.stderr.replace('nginx version: ', '').trim() };
  }
  return null;
}

async function chooseContainers(wanted: 'docker' | 'process' | null): Promise<Drivers['containers']> {
  if (wanted === 'process') return { name: 'process', reason: 'TAGYARD_CONTAINERS asks for it' };
  const docker = await isDockerUsable();
  if (docker.ok) return { name: 'docker', reason: 'the Docker Engine answers' };
  if (wanted === 'docker') throw new CliError(`TAGYARD_CONTAINERS=docker, but ${docker.reason}`);
  return { name: 'process', reason: `supervised child processes, since ${docker.reason}` };
}

function asked<Name extends string>(
  env: NodeJS.ProcessEnv,
  variable: string,
  names: readonly Name[],
): Name | null {
  const value = env[variable];
  if (value === undefined || value === '') return null;
  const name = names.find((candidate) => candidate === value);
  if (name === undefined)
    throw new CliError(`${variable}=${value} is unknown; choose one of ${names.join(', ')}`);
  return name;
}
