import { gzipSync } from 'node:zlib';
import { bundleEdge } from '../../edge/bundle.ts';
import type { Bench, Suite } from './bench.ts';
import { cpuMs } from './cpu.ts';
import { type Bed, type Contender, startBed } from './edge-bed.ts';
import { type Load, load, type Shot } from './wrk.ts';

const ROUNDS = 9;
const SECONDS = 2;
const MIXED_SECONDS = 60;

/** bench-control.ts says what it does. */
const SAME = 'a bare worker (same KV reads, body as JSON, same octets and logs)';

/** What each route is compared with, and the target fraction of its requests a second. */
const ROUTES: readonly { shot: keyof Bed['shots']; name: string; control: string; aim: number }[] = [
  { shot: 'loader', name: '/l/', control: SAME, aim: 0.8 },
  { shot: 'script', name: '/c/', control: SAME, aim: 0.8 },
  { shot: 'boot', name: '/boot', control: SAME, aim: 0.8 },
  { shot: 'prefixedLoader', name: '/l/ below a prefix', control: SAME, aim: 0.8 },
  { shot: 'prefixedScript', name: '/c/ below a prefix', control: SAME, aim: 0.8 },
  { shot: 'prefixedBoot', name: '/boot below a prefix', control: SAME, aim: 0.8 },
  { shot: 'collect', name: '/g/collect', control: 'a bare fetch', aim: 0.6 },
];

interface Measured extends Load {
  readonly rate: number;
  /** CPU milliseconds of the runtime's process a request. */
  readonly cpu: number;
}

/**
 * The edge against bare workers in the same process, measured alternately with the same logs: how much of the
 * runtime's own speed remains. Both are asked on sockets of their own, since Miniflare's front would hide the difference.
 */
export const edge: Suite = async (bench) => {
  await using bed = await startBed();
  await bytes(bench, bed);
  await bed.imitate();
  for (const route of ROUTES) await compare(bench, bed, route);
  await latency(bench, bed);
  await mixed(bench, bed);
};

async function bytes(bench: Bench, bed: Bed): Promise<void> {
  const bundle = await bundleEdge();
  await bench('edge: bundle, minified', { unit: 'B', run: () => Buffer.byteLength(bundle) });
  await bench('edge: bundle, gzipped', { unit: 'B', run: () => gzipSync(bundle, { level: 9 }).byteLength });
  const loader = Buffer.from((await bed.send('edge', bed.shots.loader)).body);
  await bench('edge: loader, gzipped', { unit: 'B', run: () => gzipSync(loader, { level: 9 }).byteLength });
}

/** What the proxy adds to the latency of a request on an idle machine: one request at a time, measured alternately. */
async function latency(bench: Bench, bed: Bed): Promise<void> {
  const alone = { shots: [bed.shots.collect], seconds: SECONDS, connections: 1 };
  const added: { p50: number; p99: number }[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const edge = await load({ port: bed.ports.edge, ...alone });
    const control = await load({ port: bed.ports.control, ...alone });
    added.push({ p50: edge.p50 - control.p50, p99: edge.p99 - control.p99 });
  }
  for (const part of ['p50', 'p99'] as const) {
    const samples = added.map((round) => round[part]);
    await bench(`edge: /g/collect adds, ${part}`, {
      unit: 'ms',
      times: ROUNDS,
      run: () => samples.shift() ?? Number.NaN,
    });
  }
}

async function compare(
  bench: Bench,
  bed: Bed,
  { shot: key, name, control, aim }: (typeof ROUTES)[number],
): Promise<void> {
  const shot = bed.shots[key];
  await measure(bed, 'edge', shot, 1);
  await measure(bed, 'control', shot, 1);
  const rounds: { edge: Measured; control: Measured }[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    rounds.push({
      edge: await measure(bed, 'edge', shot, SECONDS),
      control: await measure(bed, 'control', shot, SECONDS),
    });
  }
  const figure = (what: string, unit: string, of: (round: (typeof rounds)[number]) => number) => {
    const samples = rounds.map(of);
    return bench(`edge: ${name} ${what}`, { unit, times: ROUNDS, run: () => samples.shift() ?? Number.NaN });
  };
  await figure(`of ${control} (aim ${aim})`, '×', (round) => round.edge.rate / round.control.rate);
  // The same ratio by CPU time, which is valid on a busy machine too.
  await figure(`of ${control}, by CPU`, '×', (round) => round.control.cpu / round.edge.cpu);
  await figure('requests a second', '/s', (round) => round.edge.rate);
  await figure('CPU a request', 'ms', (round) => round.edge.cpu);
  await figure('CPU a request, control', 'ms', (round) => round.control.cpu);
}

async function measure(bed: Bed, contender: Contender, shot: Shot, seconds: number): Promise<Measured> {
  const before = cpuMs(bed.runtime);
  const result = await load({ port: bed.ports[contender], shots: [shot], seconds });
  if (result.refused > 0 || result.broken > 0)
    throw new Error(`${contender} ${shot.path}: ${JSON.stringify(result)}`);
  const cpu = (cpuMs(bed.runtime) - before) / result.requests;
  return { ...result, rate: result.requests / result.seconds, cpu };
}

/** All routes alternately on an edge that has seen its sites, while every second call of KV fails. */
async function mixed(bench: Bench, bed: Bed): Promise<void> {
  const shots = Object.values(bed.shots);
  for (const shot of shots) await bed.send('flaky', shot);
  await bed.send('flaky', { path: '/break', headers: {} });
  const { requests, failed, refused, broken, p99 } = await load({
    port: bed.ports.flaky,
    shots,
    seconds: MIXED_SECONDS,
  });
  const once = (what: string, unit: string, value: number) =>
    bench(`edge: KV failing half the time, ${what}`, { unit, run: () => value });
  await once('requests', '', requests);
  await once('answers from 500', '', failed);
  await once('answers from 400, broken connections', '', refused + broken);
  await once('p99', 'ms', p99);
}
