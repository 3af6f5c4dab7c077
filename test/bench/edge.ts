import { gzipSync } from 'node:zlib';
import { bundleEdge } from '../../edge/bundle.ts';
import type { Bench, Suite } from './bench.ts';
import { threadsMs } from './cpu.ts';
import { type Bed, startBed } from './edge-bed.ts';
import { type Slices, slices } from './slices.ts';
import { load, type Shot } from './wrk.ts';

/** Rounds of four slices: each round gives one ratio. */
const PAIRED_ROUNDS = 31;
/** Requests of a slice, which takes a tenth to half a second. */
const SLICE = 300;
/** Requests before a route is measured: V8 optimises code only after a few thousand runs. */
const WARM_UP = 6000;
const ROUNDS = 9;
const SECONDS = 2;
const MIXED_SECONDS = 60;

/** The control; bench-control.ts says what it does. */
const SAME = 'a bare worker (same KV reads, body as JSON, same octets and logs)';

/** What each route is compared with, and the target ratio of the control's CPU time to the edge's. */
const ROUTES: readonly { shot: keyof Bed['shots']; name: string; control: string; aim: number }[] = [
  { shot: 'loader', name: '/l/', control: SAME, aim: 0.8 },
  { shot: 'script', name: '/c/', control: SAME, aim: 0.8 },
  { shot: 'boot', name: '/boot', control: SAME, aim: 0.8 },
  { shot: 'prefixedLoader', name: '/l/ below a prefix', control: SAME, aim: 0.8 },
  { shot: 'prefixedScript', name: '/c/ below a prefix', control: SAME, aim: 0.8 },
  { shot: 'prefixedBoot', name: '/boot below a prefix', control: SAME, aim: 0.8 },
  { shot: 'collect', name: '/g/collect', control: 'a bare fetch', aim: 0.6 },
];

/** Milliseconds that a slice took, and the CPU milliseconds of the runtime's process. */
interface Taken {
  readonly ms: number;
  readonly cpu: number;
}

type Contenders<T> = Readonly<Record<'edge' | 'control', T>>;

/**
 * The edge against bare workers in the same process, measured alternately with the same logs: how much of the runtime's
 * own speed remains. Both get their requests on sockets of their own, because Miniflare's front would hide the
 * difference. A noisy machine's speed changes within seconds, so each ratio compares slices that directly follow one
 * another.
 */
export const edge: Suite = async (bench) => {
  await using bed = await startBed();
  await bytes(bench, bed);
  await bed.imitate();
  await using asked = slices(bed.ports.edge);
  await using bare = slices(bed.ports.control);
  for (const route of ROUTES) {
    await compare(
      bench,
      route,
      await alternately(bed, bed.shots[route.shot], { edge: asked, control: bare }),
    );
  }
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

/** What the edge adds to the latency of /g/collect on an idle machine: one request at a time, measured alternately. */
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
    await bench(`edge: latency added to /g/collect, ${part}`, {
      unit: 'ms',
      times: ROUNDS,
      run: () => samples.shift() ?? Number.NaN,
    });
  }
}

/**
 * The order is edge, control, control, edge. So a drift of the machine's speed costs both the same, and so does a
 * worker's garbage that V8 collects later.
 */
async function alternately(bed: Bed, shot: Shot, of: Contenders<Slices>): Promise<Contenders<Taken>[]> {
  const slice = async (contender: Slices): Promise<Taken> => {
    const before = threadsMs(bed.runtime);
    const ms = await contender.send(shot, SLICE);
    return { ms, cpu: threadsMs(bed.runtime) - before };
  };
  const sum = (a: Taken, b: Taken): Taken => ({ ms: a.ms + b.ms, cpu: a.cpu + b.cpu });
  await of.edge.send(shot, WARM_UP);
  await of.control.send(shot, WARM_UP);
  const rounds: Contenders<Taken>[] = [];
  while (rounds.length < PAIRED_ROUNDS) {
    const first = await slice(of.edge);
    const control = sum(await slice(of.control), await slice(of.control));
    rounds.push({ edge: sum(first, await slice(of.edge)), control });
  }
  return rounds;
}

async function compare(
  bench: Bench,
  { name, control, aim }: (typeof ROUTES)[number],
  rounds: readonly Contenders<Taken>[],
): Promise<void> {
  const figure = (what: string, unit: string, of: (round: Contenders<Taken>) => number) => {
    const samples = rounds.map(of);
    const run = () => samples.shift() ?? Number.NaN;
    return bench(`edge: ${name} ${what}`, { unit, times: rounds.length, run });
  };
  // By CPU time, which another program on the machine changes least, and by speed.
  await figure(`against ${control}, by CPU (aim ${aim})`, '×', (round) => round.control.cpu / round.edge.cpu);
  await figure(`against ${control}, by speed`, '×', (round) => round.control.ms / round.edge.ms);
  await figure('requests a second', '/s', (round) => (2000 * SLICE) / round.edge.ms);
  await figure('CPU a request', 'ms', (round) => round.edge.cpu / (2 * SLICE));
  await figure('CPU a request, control', 'ms', (round) => round.control.cpu / (2 * SLICE));
}

/** All routes alternately on an edge that has served its sites before, while every second call of KV fails. */
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
  await once('answers of 500 and above', '', failed);
  await once('answers of 400 and above, broken connections', '', refused + broken);
  await once('p99', 'ms', p99);
}
