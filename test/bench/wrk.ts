import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { z } from 'zod';

/** One request that wrk sends over and over. */
export interface Shot {
  readonly method?: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface LoadOptions {
  readonly port: number;
  /** The requests to send: alternately, each equally often. */
  readonly shots: readonly Shot[];
  readonly seconds: number;
  readonly connections?: number;
}

const summary = z.object({
  /** The number of answered requests. */
  requests: z.number(),
  seconds: z.number(),
  /** The numbers of answers of status 400 or above (`refused`) and 500 or above (`failed`; 0 with only one shot). */
  refused: z.number(),
  failed: z.number(),
  /** The number of connections that broke, and of answers that didn't come within two seconds. */
  broken: z.number(),
  p50: z.number(),
  p99: z.number(),
});
/** Latencies in milliseconds. */
type Load = z.infer<typeof summary>;

/** Sends load to 127.0.0.1 by wrk, on one thread: the machine's other cores are for the measured process. */
export async function load({ port, shots, seconds, connections = 16 }: LoadOptions): Promise<Load> {
  const folder = await mkdtemp(join(tmpdir(), 'tagyard-wrk-'));
  try {
    const script = join(folder, 'load.lua');
    await writeFile(script, scriptOf(shots));
    const { stdout } = await execa(
      'wrk',
      ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, `http://127.0.0.1:${port}`],
      // wrk's script writes numbers with the locale's decimal point.
      { env: { LC_ALL: 'C' } },
    );
    return summary.parse(JSON.parse(stdout.slice(stdout.lastIndexOf('\n{'))));
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** wrk's scripts are in Lua. A JSON string of plain ASCII is also a Lua string. */
function scriptOf(shots: readonly Shot[]): string {
  const text = (value: string) => JSON.stringify(value);
  const formats = shots.map(({ method = 'GET', path, headers, body }) => {
    const fields = Object.entries(headers).map(([name, value]) => `[${text(name)}]=${text(value)}`);
    return `wrk.format(${text(method)}, ${text(path)}, {${fields.join(',')}}, ${body === undefined ? 'nil' : text(body)})`;
  });
  return `
local shots, round = {}, 0
local threads = {}
failed, refused = 0, 0
function setup(thread) table.insert(threads, thread) end
function init() shots = {${formats.join(', ')}} end
function request() round = round % #shots + 1; return shots[round] end
${
  // Checking every answer costs wrk a good part of its speed, so only a mixture pays for it.
  shots.length > 1
    ? `function response(status)
  if status >= 500 then failed = failed + 1 end
  if status >= 400 then refused = refused + 1 end
end`
    : ''
}
function done(summary, latency)
  local errors, failed, refused = summary.errors, 0, 0
  for _, thread in ipairs(threads) do
    failed = failed + thread:get('failed'); refused = refused + thread:get('refused')
  end
  io.write(string.format('\\n{"requests":%d,"seconds":%f,"refused":%d,"failed":%d,"broken":%d,"p50":%f,"p99":%f}',
    summary.requests, summary.duration / 1e6, math.max(refused, errors.status), failed,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
`;
}
