import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { createOptions } from '../../gitops/appliers/containers/docker-spec.ts';
import type { ContainerSpec } from '../../sites/manifest/containers.ts';

/**
 * For comparison: the same containers, with the same limits and hardening, by docker-compose. `null` where it isn't
 * installed.
 */
export async function compose(project: string, specs: readonly ContainerSpec[]) {
  const { failed } = await execa('docker-compose', ['version'], { reject: false });
  if (failed) return null;
  const dir = mkdtempSync(join(tmpdir(), 'tagyard-compose-'));
  const file = join(dir, 'docker-compose.yml');
  const services = Object.fromEntries(
    specs.map((spec) => [`${spec.site}-${spec.role}-${spec.replica}`, serviceOf(spec)]),
  );
  // JSON is YAML, too.
  writeFileSync(file, JSON.stringify({ version: '2.4', services }));
  const run = async (...args: string[]) => {
    await execa('docker-compose', ['--project-name', project, '--file', file, ...args], { timeout: 600_000 });
  };
  return {
    up: () => run('up', '-d'),
    down: () => run('down', '--timeout', '2'),
    async [Symbol.asyncDispose]() {
      await run('down', '--timeout', '0');
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function serviceOf(spec: ContainerSpec): object {
  const { Image, User, Env = [], HostConfig = {} } = createOptions({ name: '', mark: '', spec });
  const { Memory, MemorySwap, NanoCpus = 0, PidsLimit, LogConfig, Tmpfs = {} } = HostConfig;
  return {
    image: Image,
    user: User,
    // Compose reads a dollar sign as the start of a variable.
    environment: Env.map((line) => line.replaceAll('$', '$$$$')),
    ports: [`${spec.boundAddress}:${spec.port}:8080`],
    extra_hosts: HostConfig.ExtraHosts,
    network_mode: 'bridge',
    read_only: HostConfig.ReadonlyRootfs,
    tmpfs: Object.entries(Tmpfs).map(([path, options]) => `${path}:${options}`),
    cap_drop: HostConfig.CapDrop,
    security_opt: HostConfig.SecurityOpt,
    mem_limit: Memory,
    memswap_limit: MemorySwap,
    cpus: NanoCpus / 1e9,
    pids_limit: PidsLimit,
    restart: HostConfig.RestartPolicy?.Name,
    logging: { driver: LogConfig?.Type, options: LogConfig?.Config },
  };
}
