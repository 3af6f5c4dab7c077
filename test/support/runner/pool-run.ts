import { spawn, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { createVitest } from 'vitest/node';
import { z } from 'zod';
import { filesOf, ON_ONE_NETWORK, OWN_NETWORK, POOLS, type Pool } from '../../suites.ts';
import { type FileOutcome, readModule } from '../report.ts';

const CLOSE_DEADLINE_MS = 30_000;
/** Environment of a process that runs one pool for the runner: the pool, and the file for its `poolOutcome`. */
const POOL_VARIABLE = 'TAGYARD_TEST_POOL';
const OUTCOME_VARIABLE = 'TAGYARD_TEST_OUTCOME';

const poolOutcome = z.object({
  outcomes: z.array(z.custom<FileOutcome>((value) => typeof value === 'object')),
  stray: z.number(),
  /** Messages of `close`. */
  hung: z.array(z.string()),
});
export type PoolOutcome = z.infer<typeof poolOutcome>;

/** The files of a pool that the filters select. */
interface PoolRun {
  readonly pool: Pool;
  /** Absolute paths. */
  readonly files: readonly string[];
  /** It must not run beside another pool for which this is true. */
  readonly needsQuietNetwork: boolean;
  run(): Promise<void>;
  /** The outcomes of the files that ran, and the number of errors outside their tests. */
  outcome(): Omit<PoolOutcome, 'hung'>;
  /** Ends the workers. Returns a message if one doesn't end, without waiting longer for it; `null`: all have ended. */
  close(): Promise<string | null>;
}

/** The pool that this process runs for another process, and the file for its outcome; `null`: this process runs all. */
export function servedPool(): { readonly pool: string; readonly file: string } | null {
  const { [POOL_VARIABLE]: pool, [OUTCOME_VARIABLE]: file } = process.env;
  return pool === undefined || file === undefined ? null : { pool, file };
}

/** The files of a pool that needs its own network run in another process, if this one may create a network. */
export async function openPool(pool: Pool, filters: readonly string[]): Promise<PoolRun> {
  // A container's root may have no right to namespaces.
  const isOwn =
    OWN_NETWORK.has(pool) && servedPool() === null && spawnSync('unshare', ['--net', 'true']).status === 0;
  return isOwn ? apart(pool, filters) : await inThisProcess(pool, filters);
}

/** Whether filters select a file of the pool. Starting Vitest without a file would take a second. */
export function hasSelected(pool: Pool, filters: readonly string[]): boolean {
  return selected(pool, filters).length > 0;
}

function selected(pool: Pool, filters: readonly string[]): string[] {
  // Vitest also takes a path with a line's number, and an absolute path.
  const parts = filters.map((filter) => relative('', filter.replace(/:\d+$/, '')));
  const files = POOLS[pool].flatMap(filesOf);
  return parts.length === 0 ? files : files.filter((file) => parts.some((part) => file.includes(part)));
}

async function inThisProcess(pool: Pool, filters: readonly string[]): Promise<PoolRun> {
  const vitest = await createVitest('test', {
    project: [...POOLS[pool]],
    run: true,
    watch: false,
    // One file at a time in each pool: two cores serve all of them.
    maxWorkers: 1,
    // The live summary of one pool would overwrite that of another.
    reporters: [['default', { summary: false }]],
    // The pools would write the same file.
    cache: false,
  });
  const specifications = await vitest.globTestSpecifications([...filters]);
  const files = specifications.map(({ moduleId }) => moduleId);
  return {
    pool,
    files,
    needsQuietNetwork: ON_ONE_NETWORK.has(pool),
    async run() {
      if (files.length > 0) await vitest.start([...filters]);
    },
    outcome: () => ({
      outcomes: vitest.state.getTestModules().map(readModule),
      stray: vitest.state.getUnhandledErrors().length,
    }),
    async close() {
      const { promise, resolve } = Promise.withResolvers<string>();
      const late = () => resolve(`The test workers of ${pool} do not end.`);
      const timer = setTimeout(late, CLOSE_DEADLINE_MS);
      const closed = vitest.close().then(
        () => null,
        (error: unknown) => String(error),
      );
      return await Promise.race([closed, promise]).finally(() => clearTimeout(timer));
    },
  };
}

/**
 * Prepares a new network namespace, and runs the command in its arguments. With loopback alone, Chromium takes the
 * machine to be offline. So there is another interface, with an address that is reserved for benchmarks (RFC 2544).
 */
const IN_NEW_NETWORK = [
  'ip link set lo up',
  'ip link add machine type veth peer name nowhere',
  'ip addr add 198.19.0.1/32 dev machine',
  'ip link set nowhere up',
  'ip link set machine up',
  'exec "$0" "$@"',
].join(' && ');

/** In a process with a network namespace of its own, which has no way out of the machine. */
function apart(pool: Pool, filters: readonly string[]): PoolRun {
  const paths = selected(pool, filters);
  let known: PoolOutcome = { outcomes: [], stray: 0, hung: [] };
  return {
    pool,
    files: paths.map((path) => join(process.cwd(), path)),
    needsQuietNetwork: false,
    async run() {
      if (paths.length === 0) return;
      const folder = await mkdtemp(join(tmpdir(), 'tagyard-pool-'));
      const file = join(folder, 'outcome.json');
      const argv = ['--net', 'sh', '-c', IN_NEW_NETWORK, process.execPath, 'test/run.ts', ...filters];
      const env = { ...process.env, [POOL_VARIABLE]: pool, [OUTCOME_VARIABLE]: file };
      const child = spawn('unshare', argv, { env, stdio: 'inherit' });
      const { promise, resolve } = Promise.withResolvers<string>();
      child.once('error', ({ message }) => resolve(message));
      child.once('exit', (code, signal) => resolve(`ended with ${code ?? signal}`));
      const end = await promise;
      known = await readFile(file, 'utf8').then(
        (text) => poolOutcome.parse(JSON.parse(text)),
        () => unknown(paths, `the process of the pool ${pool}: ${end}`),
      );
      await rm(folder, { recursive: true });
    },
    outcome: () => known,
    close: async () => known.hung[0] ?? null,
  };
}

/** Every file counts as failed. */
function unknown(paths: readonly string[], why: string): PoolOutcome {
  const outcome = { passed: 0, failed: 1, skipped: 0, seconds: 0, failures: [why] };
  return { outcomes: paths.map((path) => ({ ...outcome, path })), stray: 0, hung: [] };
}
