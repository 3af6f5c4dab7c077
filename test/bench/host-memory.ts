import { readdirSync, readFileSync } from 'node:fs';
import type Docker from 'dockerode';
import { residentMiB } from './memory.ts';

/**
 * The memory that containers take on this host, in MiB: their own processes, and for each container the engine's shim and
 * docker-proxy. Proportional (PSS), so that shared pages count once.
 */
export async function containersMiB(docker: Docker, namePrefix: string): Promise<number> {
  const all = await docker.listContainers();
  const ours = all.filter(({ Names }) => Names.some((name) => name.startsWith(`/${namePrefix}`)));
  const inspected = await Promise.all(
    ours.map(({ Id }) =>
      docker
        .getContainer(Id)
        .inspect()
        .catch(() => null),
    ),
  );
  const found = inspected.filter((one) => one?.State.Running);
  const addresses = found.flatMap((one) =>
    Object.values(one?.HostConfig.PortBindings ?? {}).flatMap(
      (bindings) => (bindings as { HostIp: string }[]).map(({ HostIp }) => HostIp), // the engine's data, untyped in the library
    ),
  );
  const holders = commands().filter(
    ({ argv }) => argv[0]?.endsWith('docker-proxy') && addresses.includes(after(argv, '-host-ip')),
  );
  // A shim is the parent of its container's processes, so its process tree includes them.
  const shims = commands().filter(({ argv }) => found.some((one) => argv.includes(one?.Id ?? '')));
  return [...shims, ...holders].reduce((total, { pid }) => total + residentMiB(pid), 0);
}

function after(argv: readonly string[], flag: string): string {
  return argv[argv.indexOf(flag) + 1] ?? '';
}

function commands(): { pid: number; argv: string[] }[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    try {
      return [{ pid: Number(entry), argv: readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0') }];
    } catch {
      // Ended meanwhile.
      return [];
    }
  });
}
