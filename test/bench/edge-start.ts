import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Suite } from './bench.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * What an isolate pays before its first request: the worker's own bundle, evaluated in workerd under V8's profiler, as
 * `wrangler check startup` does it. Active time, without the wait for the profiler; the aim is under 20 ms.
 */
export const edgeStart: Suite = async (bench) => {
  const home = await mkdtemp(join(tmpdir(), 'tagyard-start-'));
  try {
    await bench('edge: start-up in workerd', { unit: 'ms', times: 5, run: () => activeMs(home) });
  } finally {
    await rm(home, { recursive: true, force: true });
  }
};

async function activeMs(home: string): Promise<number> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [
      join(root, 'node_modules/wrangler/bin/wrangler.js'),
      'check',
      'startup',
      '--outfile',
      join(home, 'start.cpuprofile'),
    ],
    {
      cwd: root,
      env: {
        ...process.env,
        PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}`,
        XDG_CONFIG_HOME: home,
        WRANGLER_LOG_PATH: join(home, 'logs'),
        WRANGLER_SEND_METRICS: 'false',
        CI: '1',
      },
    },
  );
  const [, active] = /Active: ([\d.]+) ms/.exec(stdout) ?? [];
  if (active === undefined) throw new Error(`wrangler printed no active time:\n${stdout}`);
  return Number(active);
}
