import { expect } from 'vitest';
import { eventually } from '../eventually.ts';
import type { RunningDaemon } from '../gitops/daemon.ts';
import type { Effect, Moment } from '../gitops/gate.ts';
import { type Asked, ask, standing } from './operations.ts';
import { converged, killAtCommit, type Snapshot, type Stage } from './stage.ts';

/** Where a daemon is killed: at the commit of a request, or at the `index`-th effect of a kind since the request. */
export interface Cut {
  readonly kind: 'commit' | Effect['kind'];
  /** Counted from 1. */
  readonly index: number;
  readonly moment: Moment;
  /** Counts only effects whose label matches. Default: all. */
  readonly of?: RegExp;
}

/** The outcome of one kill. */
export interface Outcome {
  readonly asked: string;
  readonly cut: Cut;
  readonly label: string;
  /** Number of effects that the next start needed to converge. */
  readonly writes: number;
}

/** For each step of the sites' life (`lifeOf`), the state once it is fully applied. */
type Reference = ReadonlyMap<string, { readonly world: Snapshot; readonly files: unknown }>;

/**
 * Runs a whole life without a kill. Returns the state after each step, and how many effects (by default of any label)
 * each step took.
 */
export async function reference(stage: Stage, life: readonly Asked[], of = /./) {
  const steps = new Map<string, { world: Snapshot; files: unknown }>();
  const effects = new Map<string, number>();
  await using daemon = await stage.start();
  for (const { name, requests } of life) {
    let count = 0;
    stage.gate.watch(({ kind, label }, moment) => {
      if (kind === 'world' && moment === 'after' && of.test(label)) count += 1;
      return false;
    });
    expect(await ask(daemon, requests)).toEqual([]);
    await converged(daemon);
    steps.set(name, { world: stage.snapshot(), files: await files(stage) });
    effects.set(name, count);
  }
  return { steps, effects };
}

/**
 * Sends the requests of a step, kills the daemon at `cut`, starts another and waits until it has converged. Returns the
 * running daemon and the outcome; the outcome is `null` if the step ended before `cut`, because it has fewer effects
 * than that. A creation begins without wildcards, like the first one in a zone.
 */
export async function killOnce(
  stage: Stage,
  daemon: RunningDaemon,
  { name, requests }: Asked,
  cut: Cut,
  sites: readonly string[],
  expected: Reference,
): Promise<{ daemon: RunningDaemon; outcome: Outcome | null }> {
  stage.prepare();
  if (name === 'create') stage.forgetWildcards();
  let label: string | null = null;
  let target: Effect | null = null;
  if (cut.kind === 'commit') killAtCommit(stage.sitesRepo, daemon.pid, cut.moment);
  let seen = 0;
  stage.gate.watch((effect, moment) => {
    if (label !== null || effect.kind !== cut.kind || cut.of?.test(effect.label) === false) return false;
    if (moment === 'before') {
      seen += 1;
      if (seen === cut.index) target = effect;
    }
    if (effect !== target || moment !== cut.moment) return false;
    label = effect.label;
    daemon.child.kill('SIGKILL');
    return true;
  });
  let open = await ask(daemon, requests);
  await converged(daemon).catch((error: unknown) => {
    if (!daemon.exited() && daemon.child.signalCode !== 'SIGKILL') throw error;
  });
  if (!daemon.exited() && label === null) return { daemon, outcome: null };
  await eventually(() => expect(daemon.child.signalCode).toBe('SIGKILL'));

  const left = stage.snapshot();
  expectFoundations(left, sites);
  if (!['create', 'remove'].includes(name)) expectServed(left, sites);
  expectForeign(left, expected);

  let writes = 0;
  stage.gate.watch(({ kind }, moment) => {
    if (kind === 'world' && moment === 'after') writes += 1;
    return false;
  });
  stage.nextWindow();
  const next = await stage.start();
  open = await ask(next, open);
  expect(open).toEqual([]);
  await converged(next);
  const wanted = expected.get(name);
  expect(stage.snapshot()).toEqual(wanted?.world);
  await stage.expectDelivered();
  expect(await files(stage)).toEqual(wanted?.files);
  return { daemon: next, outcome: { asked: name, cut, label: label ?? 'commit', writes } };
}

/** A name never leads to something missing: a resource exists only if those of the kinds before it exist. */
function expectFoundations(world: Snapshot, sites: readonly string[]): void {
  for (const site of sites) {
    const counts = Object.values(standing(world, site));
    const first = counts.indexOf(0);
    const floating = first === -1 ? [] : counts.slice(first).filter((count) => count > 0);
    expect(floating, `${site} ${JSON.stringify(standing(world, site))}`).toEqual([]);
  }
}

/** While a site changes, none of its resources is missing at any moment. */
function expectServed(world: Snapshot, sites: readonly string[]): void {
  const least = { containers: 2, proxy: 1, kv: 4, routes: 1, dns: 3 };
  for (const site of sites) {
    const there = standing(world, site);
    const short = Object.entries(least).filter(([kind, count]) => there[kind as keyof typeof least] < count); // entries forgets the key type
    expect(short, site).toEqual([]);
  }
}

/**
 * After everything was removed, only wildcards and foreign resources remain; each foreign one must exist at every other
 * moment too.
 */
function expectForeign(world: Snapshot, expected: Reference): void {
  const foreign = expected.get('remove')?.world;
  for (const kind of ['containers', 'proxy', 'kv', 'routes', 'dns'] as const) {
    const kept = [...(foreign?.[kind] ?? [])].filter((one) => !isWildcard(one));
    expect(world[kind]).toEqual(expect.arrayContaining(kept));
  }
}

const isWildcard = (resource: object) =>
  ['name', 'pattern'].some((key) => String(Reflect.get(resource, key) ?? '').startsWith('*'));

async function files(stage: Stage): Promise<unknown> {
  const head = await stage.repo.head();
  return head === null ? [] : (await stage.repo.read(head)).map(({ site, text }) => ({ site, text }));
}

/** A line for each commit or effect: how many effects the next start needed if the kill was before it, or after it. */
export function table(outcomes: readonly Outcome[]): string {
  const rows = Map.groupBy(outcomes, ({ asked, cut }) => `${asked} ${cut.kind} ${cut.index}`);
  const lines = [...rows.values()].map((both) => {
    const [{ asked, cut, label }] = both as [Outcome, ...Outcome[]]; // groupBy makes no empty groups
    const writesAt = (moment: Moment) =>
      String(both.find((one) => one.cut.moment === moment)?.writes ?? '–').padStart(6);
    const which = `${cut.kind} ${cut.index}`.padEnd(10);
    return `${asked.padEnd(24)}${which}${writesAt('before')} ${writesAt('after')}  ${label}`;
  });
  const head = `${'asked'.padEnd(24)}${'killed at'.padEnd(10)}before  after  effect; figures: writes of the next start`;
  return [head, ...lines].join('\n');
}
