import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorker, COMPATIBILITY_DATE } from '../../edge/bundle.ts';
import { wrangler } from '../support/wrangler.ts';
import type { Suite } from './bench.ts';

const ROUNDS = 7;
const CONTROL = fileURLToPath(new URL('../support/edge/worker/bench-start.ts', import.meta.url));
const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The time that an isolate needs before its first request: the worker's own bundle, evaluated in workerd under V8's
 * profiler, as `wrangler check startup` does it. Counts the active time without the wait for the profiler; the target
 * is under 20 ms. It is wall time, so on a busy machine the minimum is the best estimate. The control, measured
 * alternately, is a worker of the edge's libraries and almost nothing else.
 */
export const edgeStart: Suite = async (bench) => {
  const home = await mkdtemp(join(tmpdir(), 'tagyard-start-'));
  const control = join(home, 'control');
  await mkdir(control);
  await writeFile(join(control, 'worker.js'), await bundleWorker(CONTROL));
  const config = {
    name: 'control',
    main: 'worker.js',
    no_bundle: true,
    compatibility_date: COMPATIBILITY_DATE,
  };
  await writeFile(join(control, 'wrangler.json'), JSON.stringify(config));
  try {
    const rounds: { edge: number; control: number }[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      rounds.push({ edge: await activeMs(root, home), control: await activeMs(control, home) });
    }
    const figure = (name: string, of: (round: (typeof rounds)[number]) => number) => {
      const samples = rounds.map(of);
      return bench(name, { unit: 'ms', times: ROUNDS, run: () => samples.shift() ?? Number.NaN });
    };
    const own = await figure('edge: start-up in workerd (aim 20)', ({ edge }) => edge);
    const alone = await figure(
      'edge: start-up of its router and schema library alone',
      (round) => round.control,
    );
    // The ratio of the medians, not of each round: the profiler sometimes sees nothing of a control's start.
    await bench('edge: start-up, against these alone (aim 1.5)', {
      unit: '×',
      run: () => own.median / alone.median,
    });
  } finally {
    await rm(home, { recursive: true, force: true });
  }
};

async function activeMs(project: string, home: string): Promise<number> {
  const profile = join(home, 'start.cpuprofile');
  const printed = await wrangler(project, home, 'check', 'startup', '--outfile', profile);
  const [, active] = /Active: ([\d.]+) ms/.exec(printed) ?? [];
  if (active === undefined) throw new Error(`wrangler printed no active time:\n${printed}`);
  return Number(active);
}
