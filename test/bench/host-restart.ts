import Docker from 'dockerode';
import type { ManifestInput } from '../../sites/manifest/schema.ts';
import { removeContainers, tagServerImage } from '../support/containers/tag-server-image.ts';
import { eventually } from '../support/eventually.ts';
import { ask } from '../support/proxy/proxy.ts';
import { startLoad } from '../support/steady-load.ts';
import type { Suite } from './bench.ts';
import { type HostBed, hostBed } from './host-bed.ts';

const INSTANCE = 'bench-again';

const LIMIT_SECONDS = 15;
const SAMPLES = 3;

/**
 * Restarts the provisioner while visitors send 200 requests a second through nginx to a container. Then kills containers,
 * some while git can be reached and some while it can't.
 */
export const hostRestart: Suite = async (bench) => {
  const docker = new Docker();
  await using built = await tagServerImage(docker, INSTANCE);
  await using bed = await hostBed({
    instance: INSTANCE,
    loopbackSubnet: '127.89',
    image: built.image,
    isRemote: true,
  });
  // Removes the bench's containers even after a failure.
  await using _cleaning = { [Symbol.asyncDispose]: () => removeContainers(docker, INSTANCE) };
  const site = bed.manifest(0);
  await bed.push([site]);
  await bed.reach([site.site], 'Ready');
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const load = startLoad(bed.endpoint, site.hostnames.origin, { perSecond: 200 });
    const startedAt = performance.now();
    await bed.restart(signal);
    const seconds = (performance.now() - startedAt) / 1000;
    const { failures, sent } = await load.end();
    for (const failure of failures.slice(0, 5)) console.log(failure);
    await bench(`restart of the provisioner by ${signal} under 200 requests/s`, {
      unit: 's until it has observed everything',
      run: () => seconds,
    });
    await bench('  requests sent meanwhile', { unit: '', run: () => sent });
    await bench('  requests lost (0)', { unit: '', run: () => failures.length });
  }
  // Each container is killed only once: one that dies again and again is a repair loop.
  const others = Array.from({ length: 2 * SAMPLES }, (_, number) => bed.manifest(1 + number));
  await bed.push(others);
  await bed.reach(
    others.map((one) => one.site),
    'Ready',
  );
  const repair = async () => {
    const next = others.pop();
    if (next === undefined) throw new Error('every site was used');
    return await secondsToRepair(docker, bed, next);
  };
  const ratio = { unit: '×', times: SAMPLES };
  await bench(`repair of a killed container, against ${LIMIT_SECONDS} s (control)`, {
    ...ratio,
    run: async () => (await repair()) / LIMIT_SECONDS,
  });
  await bench(`repair of a killed container while git is away, against ${LIMIT_SECONDS} s`, {
    ...ratio,
    run: async () => (await bed.withoutGit(repair)) / LIMIT_SECONDS,
  });
};

/** Kills the processing container, and waits until another one answers visitors. Docker restarts no killed container. */
async function secondsToRepair(
  docker: Docker,
  bed: HostBed,
  { site, hostnames }: ManifestInput,
): Promise<number> {
  const name = `tagyard-${INSTANCE}-${site}-processing`;
  const all = await docker.listContainers({ filters: { name: [name] } });
  const [running] = all;
  if (running === undefined) throw new Error(`${name} does not run`);
  await docker.getContainer(running.Id).kill();
  const startedAt = performance.now();
  await eventually(
    async () => {
      const { status } = await ask(bed.endpoint, {
        host: hostnames.origin,
        path: '/healthy',
        timeoutMs: 2_000,
      });
      if (status !== 200) throw new Error(`status ${status}`);
    },
    { timeoutMs: 120_000, intervalMs: 50 },
  );
  return (performance.now() - startedAt) / 1000;
}
