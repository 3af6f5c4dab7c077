import { mayWriteFirewall } from '../../appliers/network/firewall.ts';
import { isDockerUsable } from '../../clients/docker.ts';
import { CliError } from '../output/cli-error.ts';

/** What implements a part of the instance, with the reason that a start prints. */
interface Driver<Name extends string> {
  readonly name: Name;
  readonly reason: string;
}

export interface Drivers {
  readonly database: Driver<'postgresql' | 'pglite'>;
  readonly dns: Driver<'cloudflare-emulator'>;
  readonly edge: Driver<'workerd'>;
  readonly proxy: Driver<'nginx' | 'embedded'> & { readonly bin?: string };
  readonly containers: Driver<'docker' | 'process'>;
  /** What isolates a site's containers from other sites and from this machine. */
  readonly isolation: Driver<'firewall' | 'networks' | 'none'>;
}

export const PROXIES = ['nginx', 'embedded'] as const;
export const RUNTIMES = ['docker', 'process'] as const;

/** What is installed on the machine. */
export interface Machine {
  findNginx(): Promise<{ readonly bin: string; readonly version: string } | null>;
  isDockerUsable(): Promise<{ readonly ok: true } | { readonly ok: false; readonly reason: string }>;
  mayWriteFirewall(): Promise<boolean>;
}

/**
 * Chooses the proxy, the containers and their isolation by `TAGYARD_PROXY`, `TAGYARD_CONTAINERS` and
 * `CONTAINER_FIREWALL`, by default by what is installed. Throws `CliError` if a requested one can't be used.
 */
export async function chooseDrivers(
  env: NodeJS.ProcessEnv,
  machine: Machine = { findNginx, isDockerUsable, mayWriteFirewall },
): Promise<Drivers> {
  const [proxy, containers] = await Promise.all([
    chooseProxy(machine, requested(env, 'TAGYARD_PROXY', PROXIES)),
    chooseContainers(machine, requested(env, 'TAGYARD_CONTAINERS', RUNTIMES)),
  ]);
  return {
    database: env.DATABASE_URL
      ? { name: 'postgresql', reason: 'DATABASE_URL is set' }
      : { name: 'pglite', reason: 'in-process PostgreSQL, because DATABASE_URL is not set' },
    dns: {
      name: 'cloudflare-emulator',
      reason:
        env.CLOUDFLARE_EMULATOR === 'real'
          ? 'emulates Cloudflare’s API on this machine, with its limits and delays'
          : 'emulates Cloudflare’s API with its limits; KV reaches the worker within 1 s (60 s with CLOUDFLARE_EMULATOR=real)',
    },
    edge: { name: 'workerd', reason: 'runs the deployed worker in Cloudflare’s own runtime' },
    proxy,
    containers,
    isolation: await chooseIsolation(
      machine,
      containers.name,
      requested(env, 'CONTAINER_FIREWALL', ['enforce', 'off']),
    ),
  };
}

async function chooseIsolation(
  machine: Machine,
  containers: Drivers['containers']['name'],
  wanted: 'enforce' | 'off' | null,
): Promise<Drivers['isolation']> {
  if (containers === 'process') {
    if (wanted === 'enforce') {
      throw new CliError(
        'CONTAINER_FIREWALL=enforce, but child processes can’t be isolated; run the containers by Docker, or unset the variable',
      );
    }
    return { name: 'none', reason: 'child processes reach each other, this machine and its network' };
  }
  if (wanted !== 'off' && (await machine.mayWriteFirewall())) {
    return { name: 'firewall', reason: 'containers reach the internet and their preview server only' };
  }
  if (wanted === 'enforce') {
    throw new CliError(
      'CONTAINER_FIREWALL=enforce, but iptables can’t be used; install it and start as root, or unset the variable',
    );
  }
  const cause = wanted === 'off' ? 'CONTAINER_FIREWALL is off' : 'iptables is missing or needs root';
  return {
    name: 'networks',
    reason: `containers of two sites don’t reach each other, but they reach this machine and private addresses: ${cause}`,
  };
}

async function chooseProxy(machine: Machine, wanted: 'nginx' | 'embedded' | null): Promise<Drivers['proxy']> {
  if (wanted === 'embedded') return { name: 'embedded', reason: 'TAGYARD_PROXY is set' };
  const found = await machine.findNginx();
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

/** nginx is often in sbin, which is not in a user's PATH. */
async function findNginx(): Promise<{ bin: string; version: string } | null> {
  const { execa } = await import('execa');
  for (const bin of ['nginx', '/usr/sbin/nginx', '/usr/local/sbin/nginx']) {
    const result = await execa(bin, ['-v'], { reject: false, timeout: 5_000 });
    if (!result.failed) return { bin, version: result.stderr.replace('nginx version: ', '').trim() };
  }
  return null;
}

async function chooseContainers(
  machine: Machine,
  wanted: 'docker' | 'process' | null,
): Promise<Drivers['containers']> {
  if (wanted === 'process') return { name: 'process', reason: 'TAGYARD_CONTAINERS is set' };
  const docker = await machine.isDockerUsable();
  if (docker.ok) return { name: 'docker', reason: 'the Docker Engine answers' };
  if (wanted === 'docker') throw new CliError(`TAGYARD_CONTAINERS=docker, but ${docker.reason}`);
  return { name: 'process', reason: `supervised child processes, because ${docker.reason}` };
}

function requested<Name extends string>(
  env: NodeJS.ProcessEnv,
  variable: string,
  names: readonly Name[],
): Name | null {
  const value = env[variable];
  if (value === undefined || value === '') return null;
  const name = names.find((candidate) => candidate === value);
  if (name === undefined)
    throw new CliError(`${variable}=${value} is unknown; set it to one of ${names.join(', ')}`);
  return name;
}
