import { describe, expect, test } from 'vitest';
import type { Applier, Change, Target, Traits } from '../../../gitops/appliers/contract.ts';
import { TerminalError } from '../../../gitops/base/errors.ts';
import { executeSite, type SiteRun } from '../../../gitops/loop/execute.ts';
import { TARGETS, TRAITS } from '../../support/gitops/targets.ts';

const change = (target: Target, op: Change['op'], key: string = target): Change => ({
  target,
  site: 'shop',
  key,
  op,
  summary: '',
});

/** Runs the changes against appliers that only note the order, and fail where they are told to. */
async function run(
  changes: readonly Change[],
  options: Partial<SiteRun> & {
    failing?: Record<string, Error>;
    drainSeconds?: number;
    signal?: AbortSignal;
    traits?: readonly Traits[];
  } = {},
) {
  const order: string[] = [];
  const withdrawn: Date[] = [];
  const steps = new Map<string, string>();
  const appliers = (options.traits ?? TRAITS).map((traits): [Target, Applier] => [
    traits.target,
    {
      ...traits,
      desired: () => [],
      observe: async () => [],
      plan: () => ({ changes: [], conflicts: [] }),
      apply: async ({ op, key }) => {
        const failure = options.failing?.[`${op} ${key}`];
        if (failure !== undefined) throw failure;
        order.push(`${op} ${key}`);
      },
    },
  ]);
  const outcome = await executeSite(
    {
      changes,
      unobserved: new Map(),
      removal: false,
      dnsRemovedAt: null,
      superseded: new AbortController().signal,
      ...options,
    },
    {
      appliers: new Map(appliers),
      drainSeconds: options.drainSeconds ?? 0,
      onDnsRemoved: (at) => withdrawn.push(at),
      onStep: ({ op, key, status }) => steps.set(`${op} ${key}`, status),
    },
    options.signal ?? new AbortController().signal,
  );
  return { order, outcome, steps, withdrawn };
}

const everything = [...TARGETS].flatMap((target) => [
  change(target, 'delete', `old ${target}`),
  change(target, 'create'),
]);

describe('executeSite', () => {
  test('brings up in order, then takes down in reverse', async () => {
    const { order } = await run(everything.toReversed());
    expect(order).toEqual([
      'create containers',
      'create proxy',
      'create kv',
      'create route',
      'create dns',
      'delete old dns',
      'delete old route',
      'delete old kv',
      'delete old proxy',
      'delete old containers',
    ]);
  });

  test('skips what depends on a failed step, the removal of what still serves included', async () => {
    const { order, outcome, steps } = await run(everything, {
      failing: { 'create proxy': new Error('refused') },
    });
    expect(order).toEqual(['create containers']);
    expect(outcome.failures).toMatchObject([{ change: { key: 'proxy' } }]);
    expect(outcome.terminal).toBe(false);
    expect(steps.get('delete old containers')).toBe('skipped');
  });

  test('tells a failure that trying again won’t mend', async () => {
    const { outcome } = await run(everything, {
      failing: { 'create kv': new TerminalError('no permission') },
    });
    expect(outcome.terminal).toBe(true);
  });

  test('does nothing that comes after a target that could not be read', async () => {
    const unobserved = new Map<Target, Error>([['kv', new Error('500')]]);
    const up = await run(everything, { unobserved });
    expect(up.order).toEqual(['create containers', 'create proxy']);
    expect(up.outcome.unobserved?.message).toBe('500');
  });

  test('finishes a removal though a container won’t go', async () => {
    const down = [...TARGETS].map((target) => change(target, 'delete'));
    const { order, outcome } = await run(down, {
      removal: true,
      failing: { 'delete containers': new Error('busy') },
    });
    expect(order).toEqual(['delete dns', 'delete route', 'delete kv', 'delete proxy']);
    expect(outcome.failures).toHaveLength(1);
  });

  test('lets only what comes before a draining target in the order wait for the drain', async () => {
    const traits = [{ target: 'first' }, { target: 'found', drainsOnRemoval: true }, { target: 'last' }];
    const down = traits.map(({ target }) => change(target, 'delete'));
    const signal = AbortSignal.timeout(50);
    const { order, withdrawn } = await run(down, { traits, signal, removal: true, drainSeconds: 3_600 });
    expect(order).toEqual(['delete last', 'delete found']);
    expect(withdrawn).toHaveLength(1);
  });

  test('fails for a target that no applier applies', async () => {
    const { outcome } = await run([change('tape', 'create')]);
    expect(outcome.terminal).toBe(true);
  });

  test('forgives a failed delete only of a target that may outlive its site', async () => {
    const traits = [{ target: 'kept', mayOutliveSite: true }, { target: 'other' }];
    const failing = { 'delete kept': new TerminalError('busy'), 'delete other': new TerminalError('busy') };
    const of = async (target: string) =>
      (await run([change(target, 'delete')], { traits, failing, removal: true })).outcome.terminal;
    expect([await of('kept'), await of('other')]).toEqual([false, true]);
  });

  describe('of a site whose DNS is gone already', () => {
    const rest = ['containers', 'proxy', 'kv', 'route'] as const;
    const down = rest.map((target) => change(target, 'delete'));
    const HOUR = 3_600;
    const ago = (seconds: number) => new Date(Date.now() - seconds * 1000);
    const soon = () => ({ signal: AbortSignal.timeout(50), removal: true, drainSeconds: HOUR });

    test('takes nothing down before the drain that an earlier run began is over', async () => {
      const waiting = await run(down, { ...soon(), dnsRemovedAt: ago(HOUR / 2) });
      expect(waiting.order).toEqual([]);
      expect(waiting.withdrawn).toEqual([]);
      const { order } = await run(down, { removal: true, drainSeconds: HOUR, dnsRemovedAt: ago(HOUR + 1) });
      expect(order).toEqual(['delete route', 'delete kv', 'delete proxy', 'delete containers']);
    });

    test('drains in full where it isn’t known since when, and tells when that began', async () => {
      const waiting = await run(down, { ...soon(), dnsRemovedAt: null });
      expect(waiting.order).toEqual([]);
      expect(waiting.withdrawn).toHaveLength(1);
    });

    test('begins anew with a record that was still there, once none is', async () => {
      const all = [...down, change('dns', 'delete')];
      const waiting = await run(all, { ...soon(), dnsRemovedAt: ago(2 * HOUR) });
      expect(waiting.order).toEqual(['delete dns']);
      expect(waiting.withdrawn).toHaveLength(1);
      const failing = { 'delete dns': new Error('busy') };
      expect((await run(all, { removal: true, drainSeconds: HOUR, failing })).withdrawn).toEqual([]);
    });
  });
});
