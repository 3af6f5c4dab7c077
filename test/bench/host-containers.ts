import Docker from 'dockerode';
import { healthOf } from '../../gitops/appliers/containers/health.ts';
import { containerSpecs } from '../../sites/manifest/containers.ts';
import { manifestSchema } from '../../sites/manifest/schema.ts';
import { Slots } from '../../sites/manifest/slots.ts';
import { nextRelease, removeContainers, tagServerImage } from '../support/containers/tag-server-image.ts';
import { eventually } from '../support/eventually.ts';
import { ask } from '../support/proxy/proxy.ts';
import { startLoad } from '../support/steady-load.ts';
import { containerSecret } from '../support/tag-server.ts';
import type { Bench, Suite } from './bench.ts';
import { type HostBed, hostBed } from './host-bed.ts';
import { compose } from './host-compose.ts';
import { containersMiB } from './host-memory.ts';

const INSTANCE = 'bench-host';
const SITES = 20;
const ROUNDS = 3;
const POLL = { timeoutMs: 600_000, intervalMs: 250 };
const { signal } = new AbortController();

/** Measures containers on one host: start and pass without changes (also by docker-compose), swap, memory. */
export const hostContainers: Suite = async (bench) => {
  const docker = new Docker();
  await using built = await tagServerImage(docker, INSTANCE);
  const next = await nextRelease(docker, built);
  await using bed = await hostBed({ instance: INSTANCE, loopbackSubnet: '127.86', image: built.image });
  // Removes the bench's containers even after a failure.
  await using _cleaning = { [Symbol.asyncDispose]: () => removeContainers(docker, INSTANCE) };
  const manifests = Array.from({ length: SITES }, (_, number) => bed.manifest(number));

  const empty = await comingUp(bench, bed, manifests);
  await bench(`tagyard, a pass with nothing to do at ${SITES} sites`, {
    unit: 'ms',
    times: 5,
    run: () => milliseconds(async () => none(await bed.plan())),
  });
  await bench('memory of the daemon per 100 sites', {
    unit: 'MiB',
    run: async () => (((await bed.memoryMiB()) - empty) / SITES) * 100,
  });
  await bench('memory of the daemon itself', { unit: 'MiB', run: () => empty });
  await swap(bench, docker, bed, [built.image, next]);
  await idle(bench, docker, bed);
};

type Manifests = readonly ReturnType<HostBed['manifest']>[];

/**
 * Measures docker-compose and Tagyard alternately, so that both have the same noise. The containers are polled one
 * after the other until the last one is healthy. Polling all at once would cost Tagyard more than docker-compose,
 * because each of its polls needs a TLS handshake and they begin at the commit. Returns the daemon's memory after all
 * its sites were removed. The memory before the first site would lack the code that is loaded and compiled for the
 * first site, although that code belongs to no site.
 */
async function comingUp(bench: Bench, bed: HostBed, manifests: Manifests): Promise<number> {
  const specs = manifests.flatMap((manifest) => {
    const loaded = { ...manifestSchema.parse(manifest), config: containerSecret() };
    return containerSpecs(loaded, { slots: new Slots('127.87'), originPort: 443 });
  });
  await using control = await compose('tagyard-bench', specs);
  if (control === null) console.log('docker-compose is not installed: there is nothing to compare with');
  const sites = manifests.map(({ site }) => site);
  const hosts = manifests.flatMap(({ hostnames }) => [hostnames.origin, hostnames.preview]);
  const composed: number[] = [];
  const ours: number[] = [];
  let empty = await bed.memoryMiB();
  for (let round = 0; round < ROUNDS; round += 1) {
    if (round > 0) {
      await bed.push(manifests.map((manifest) => ({ ...manifest, state: 'absent' })));
      await bed.reach(sites, 'Removed');
      const now = await bed.memoryMiB();
      // The minimum of the rounds, so that memory of removed sites that isn't freed yet doesn't count.
      empty = round === 1 ? now : Math.min(empty, now);
    }
    if (control !== null) {
      const up = async () => {
        await control.up();
        for (const spec of specs) await eventually(() => healthy(spec), POLL);
      };
      composed.push((await milliseconds(up)) / 1000);
      if (round === 0) {
        await bench('docker-compose up with nothing to do', {
          unit: 'ms',
          times: 3,
          run: () => milliseconds(control.up),
        });
      }
      await control.down();
    }
    const serve = async () => {
      await bed.push(manifests);
      for (const host of hosts) await eventually(() => served(bed, host), POLL);
    };
    ours.push((await milliseconds(serve)) / 1000);
    await bed.reach(sites, 'Ready');
  }
  const row = async (name: string, unit: string, samples: readonly number[]) => {
    const left = [...samples];
    const run = () => left.shift() ?? Number.NaN;
    if (left.length > 0) await bench(name, { unit, times: left.length, run });
  };
  await row(`docker-compose up of ${specs.length} containers, until healthy`, 's', composed);
  await row(`tagyard, ${SITES} sites from commit to served`, 's', ours);
  const ratios = composed.map((seconds, round) => (ours[round] ?? Number.NaN) / seconds);
  await row('  against docker-compose (at most 1)', '×', ratios);
  return empty;
}

async function swap(bench: Bench, docker: Docker, bed: HostBed, images: readonly string[]): Promise<void> {
  const site = bed.manifest(0);
  const load = startLoad(bed.endpoint, site.hostnames.origin, { perSecond: 200 });
  const memory = () => containersMiB(docker, `tagyard-${INSTANCE}-${site.site}-`);
  const base = await memory();
  let peak = base;
  let measuring: Promise<void> | null = null;
  const watching = setInterval(() => {
    measuring ??= memory().then((now) => {
      peak = Math.max(peak, now);
      measuring = null;
    });
  }, 500);
  let round = 0;
  await bench('a swap of one site under 200 requests a second', {
    unit: 's',
    times: 2,
    run: async () => {
      round += 1;
      return (await milliseconds(() => bed.swap(site.site, images[round % 2] ?? ''))) / 1000;
    },
  });
  clearInterval(watching);
  await measuring;
  const { failures, reopened } = await load.end();
  for (const failure of failures.slice(0, 5)) console.log(failure);
  await bench('requests lost during the swaps', { unit: '', run: () => failures.length });
  await bench('kept-alive connections that a reload closed before the answer to a request', {
    unit: '',
    run: () => reopened,
  });
  await bench('memory that a swap takes on top', { unit: 'MiB', run: () => peak - base });
}

async function idle(bench: Bench, docker: Docker, bed: HostBed): Promise<void> {
  const site = bed.manifest(1);
  const memory = () => containersMiB(docker, `tagyard-${INSTANCE}-${site.site}-`);
  await bench('memory of an idle site', { unit: 'MiB', run: memory });
  await bed.push([{ ...site, resources: { preview: { onDemand: true } } }]);
  await bed.reach([site.site], 'Ready');
  await eventually(async () => {
    const all = await docker.listContainers({ all: true, filters: { status: ['exited'] } });
    if (!all.some(({ Names }) => Names.some((name) => name.includes(`${site.site}-preview`)))) {
      throw new Error('the preview server still runs');
    }
  }, POLL);
  await bench('memory of an idle site, preview on demand', { unit: 'MiB', run: memory });
  await bench('the first request to a stopped preview server', {
    unit: 'ms',
    run: () => milliseconds(() => served(bed, site.hostnames.preview)),
  });
}

async function healthy({
  boundAddress: address,
  port,
}: {
  boundAddress: string;
  port: number;
}): Promise<void> {
  if ((await healthOf({ address, port }, signal)) !== 'healthy')
    throw new Error(`${address}:${port} is not healthy`);
}

async function served(bed: HostBed, host: string): Promise<void> {
  const { status } = await ask(bed.endpoint, { host, path: '/healthz' });
  if (status !== 200) throw new Error(`${host} answers ${status}`);
}

function none(changes: number): void {
  if (changes > 0) throw new Error(`${changes} changes where there should be none`);
}

async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
