import { lstatSync, readdirSync, realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { installPackage, packTree } from '../../deploy/package/pack.ts';
import { eventually } from '../support/eventually.ts';
import { type Instance, startInstance, temporaryHome } from '../support/instance.ts';
import { temporaryFolder } from '../support/package/folder.ts';
import type { Bench, Suite } from './bench.ts';
import { residentByProcess } from './memory.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MODULES = realpathSync(join(ROOT, 'node_modules'));
const IDLE_MS = 15_000;
const TIMES = 5;
const EMBEDDED = { TAGYARD_PROXY: 'embedded', TAGYARD_CONTAINERS: 'process' };

/** A worker that does nothing, in Miniflare: what the embedded edge costs at least. */
const BARE_MINIFLARE = `const { Miniflare } = await import('miniflare');
  const edge = new Miniflare({ modules: true, script: 'export default { fetch: () => new Response() }' });
  await edge.ready;
  await edge.dispose();`;

/**
 * What an installation takes: the package, a production host, and the whole instance of one machine at its second
 * start. Each is measured beside its control in the same run.
 */
export const packageFigures: Suite = async (bench) => {
  await sizes(bench);
  using home = temporaryHome();
  const start = () => startInstance(home.path, EMBEDDED);
  await (await start()).stop();
  const ready: number[] = [];
  for (let time = 1; time < TIMES; time += 1) {
    await using again = await start();
    ready.push(again.readyAfter);
  }
  await using instance = await start();
  ready.push(instance.readyAfter);
  const last = ready.at(-1) ?? Number.NaN;
  const second = { unit: 's', times: TIMES, run: () => ready.shift() ?? Number.NaN };
  await bench('npm start, ready at a second start (aim 4)', second);
  // The phases of the last start. Parts start concurrently, so the phases add up to more than the whole start.
  for (const [phase, took] of Object.entries(instance.run.phases ?? {})) {
    await bench(`  ${phase}`, { unit: 's', run: () => took });
  }
  await bench('  npm and the command, before its first phase', {
    unit: 's',
    run: () => before(instance, last),
  });
  const nodeSeconds = () => seconds(process.execPath, ['--eval', '0']);
  await bench('control: node --eval 0', { unit: 's', times: TIMES, run: nodeSeconds });
  const bare = ['--input-type=module', '--eval', BARE_MINIFLARE];
  await bench('control: a bare Miniflare', {
    unit: 's',
    times: TIMES,
    run: () => seconds(process.execPath, bare),
  });
  await idleMemory(bench, instance);
  const status = ['gitops/cli.ts', 'status'];
  const env = { TAGYARD_HOME: home.path };
  const run = () => seconds(process.execPath, status, env);
  await bench('tagyard status (aim 0.4)', { unit: 's', times: TIMES, run });
};

/**
 * Seconds until the first phase began. The rest of a start is the preparation, the longest chain of the parts that
 * start concurrently, and the sites.
 */
function before({ run: { phases = {} } }: Instance, whole: number): number {
  const { preparation = 0, edge = 0, provisioner = 0, management = 0, demo = 0, sites = 0 } = phases;
  return whole - preparation - Math.max(edge + provisioner, management, demo) - sites;
}

async function sizes(bench: Bench): Promise<void> {
  using folder = temporaryFolder();
  const tarball = await packTree(folder.path);
  await bench('tarball (aim 3)', { unit: 'MB', run: () => tarball.bytes / 1e6 });
  const host = join(folder.path, 'host');
  await installPackage(tarball, host, { omitOptional: true });
  await bench('installed on a production host (aim 120)', { unit: 'MB', run: () => megabytes(host) });
  const whole = join(folder.path, 'whole');
  await installPackage(tarball, whole);
  await bench('installed with the embedded parts', { unit: 'MB', run: () => megabytes(whole) });
  await bench('control: the modules of a checkout', { unit: 'MB', run: () => megabytes(MODULES) });
}

async function idleMemory(bench: Bench, instance: Instance): Promise<void> {
  const readyAt = performance.now();
  const isIdle = () => {
    if (performance.now() - readyAt < IDLE_MS) throw new Error('the instance has not been idle for 15 s');
  };
  await eventually(isIdle, { timeoutMs: 2 * IDLE_MS });
  const processes = residentByProcess(instance.pid);
  const sum = processes.reduce((total, { mib }) => total + mib, 0);
  await bench('idle, sum of RSS with npm', { unit: 'MiB', run: () => sum });
  for (const { command, mib } of processes) {
    await bench(`  ${nameOf(command)}`, { unit: 'MiB', run: () => mib });
  }
}

/** Of a Node process, its script with the folder; else the title that the process has set, or its program. */
function nameOf(command: string): string {
  const script = command.split(' ').find((word) => /\.[jt]s$/.test(word));
  if (script === undefined) return basename(command.split(' ', 2).join(' '));
  return script.split('/').slice(-2).join('/');
}

async function seconds(file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<number> {
  const started = performance.now();
  await execa(file, args, { cwd: ROOT, env, reject: false });
  return (performance.now() - started) / 1000;
}

/** The size of all files of a folder; caches of tools, and what is called `home`, don't count. */
function megabytes(folder: string): number {
  const bytes = (path: string): number => {
    const found = lstatSync(path);
    if (!found.isDirectory()) return found.size;
    return readdirSync(path)
      .filter((name) => name !== '.cache' && name !== '.vitest-cache' && name !== 'home')
      .reduce((total, name) => total + bytes(join(path, name)), 0);
  };
  return bytes(folder) / 1e6;
}
