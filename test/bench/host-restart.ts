import Docker from 'dockerode';
import { removeContainers, tagServerImage } from '../support/containers/tag-server-image.ts';
import { startLoad } from '../support/steady-load.ts';
import type { Suite } from './bench.ts';
import { hostBed } from './host-bed.ts';

const INSTANCE = 'bench-again';

/** Restarts the provisioner while visitors send 200 requests a second through nginx to a container. */
export const hostRestart: Suite = async (bench) => {
  const docker = new Docker();
  await using built = await tagServerImage(docker, INSTANCE);
  await using bed = await hostBed({ instance: INSTANCE, loopbackSubnet: '127.89', image: built.image });
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
};
