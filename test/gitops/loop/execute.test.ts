import { beforeEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../../base/clock.ts';
import { TerminalError } from '../../../base/errors.ts';
import type { Applier, Change, Target, Traits } from '../../../gitops/appliers/contract.ts';
import { executeSite, type SiteRun } from '../../../gitops/loop/execute.ts';
import { TARGETS, TRAITS } from '../../support/gitops/targets.ts';
import { testClock } from '../../support/test-clock.ts';

const change = (target: Target, op: Change['op'], key: string = target): Change => ({
  target,
  site: 'shop',
  key,
  op,
  summary: '',
});

/** Runs the changes against appliers that record the order, and fail for the changes of `failing`. */
async function run(
  changes: readonly Change[],
  options: Partial<SiteRun> & {
    failing?: Record<string, Error>;
    drainSeconds?: number;
    signal?: AbortSignal;
    traits?: readonly Traits[];
    clock?: Clock;
    order?: string[];
    drainStarts?: Date[];
    before?: () => void;
    /** The change that waits until its run is superseded. */
    waiting?: string;
  } = {},
) {
  const { order = [], drainStarts = [] } = options;
  const durations: number[] = [];
  const steps = new Map<string, string>();
  const appliers = (options.traits ?? TRAITS).map((traits): [Target, Applier] => [
    traits.target,
    {
      ...traits,
      desired: () => [],
      observe: async () => [],
      plan: () => ({ changes: [], conflicts: [] }),
      apply: async ({ op, key }, _signal, run) => {
        options.before?.();
        if (options.waiting === `${op} ${key}`) run?.superseded?.throwIfAborted();
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
      onDnsRemoved: (at) => drainStarts.push(at),
      onStep: ({ op, key, status, ms }) => {
        steps.set(`${op} ${key}`, status);
        if (status === 'succeeded') durations.push(ms);
      },
      clock: options.clock ?? testClock(),
    },
    options.signal ?? new AbortController().signal,
  );
  return { order, outcome, steps, durations };
}

const everything = [...TARGETS].flatMap((target) => [
  change(target, 'delete', `old ${target}`),
  change(target, 'create'),
]);

describe('executeSite', () => {
  test('creates in order, then deletes in reverse order', async () => {
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

  test('skips the steps after a failed one, the deletes included', async () => {
    const { order, outcome, steps } = await run(everything, {
      failing: { 'create proxy': new Error('refused') },
    });
    expect(order).toEqual(['create containers']);
    expect(outcome.failures).toMatchObject([{ change: { key: 'proxy' } }]);
    expect(outcome.terminal).toBe(false);
    expect(steps.get('delete old containers')).toBe('skipped');
  });

  test('reports a failure that no retry can fix as terminal', async () => {
    const { outcome } = await run(everything, {
      failing: { 'create kv': new TerminalError('no permission') },
    });
    expect(outcome.terminal).toBe(true);
  });

  test('skips a target that could not be observed, and all later ones', async () => {
    const unobserved = new Map<Target, Error>([['kv', new Error('500')]]);
    const up = await run(everything, { unobserved });
    expect(up.order).toEqual(['create containers', 'create proxy']);
    expect(up.outcome.unobserved?.message).toBe('500');
  });

  test('finishes a removal although a container can’t be deleted', async () => {
    const down = [...TARGETS].map((target) => change(target, 'delete'));
    const { order, outcome } = await run(down, {
      removal: true,
      failing: { 'delete containers': new Error('busy') },
    });
    expect(order).toEqual(['delete dns', 'delete route', 'delete kv', 'delete proxy']);
    expect(outcome.failures).toHaveLength(1);
  });

  test('waits for the drain once a draining target is deleted, and not before', async () => {
    const traits = [{ target: 'first' }, { target: 'found', drainsOnRemoval: true }, { target: 'last' }];
    const down = traits.map(({ target }) => change(target, 'delete'));
    const clock = testClock();
    const { order, drainStarts }: { order: string[]; drainStarts: Date[] } = { order: [], drainStarts: [] };
    void run(down, { traits, removal: true, drainSeconds: 3_600, clock, order, drainStarts });
    await new Promise(setImmediate);
    expect(order).toEqual(['delete last', 'delete found']);
    expect(drainStarts).toHaveLength(1);
    clock.advance(3_600_000);
    await new Promise(setImmediate);
    expect(order).toEqual(['delete last', 'delete found', 'delete first']);
  });

  test('fails for a target without an applier', async () => {
    const { outcome } = await run([change('unknown', 'create')]);
    expect(outcome.terminal).toBe(true);
  });

  test('ignores a failed delete only of a target that may outlive its site', async () => {
    const traits = [{ target: 'kept', mayOutliveSite: true }, { target: 'other' }];
    const failing = { 'delete kept': new TerminalError('busy'), 'delete other': new TerminalError('busy') };
    const of = async (target: string) =>
      (await run([change(target, 'delete')], { traits, failing, removal: true })).outcome.terminal;
    expect([await of('kept'), await of('other')]).toEqual([false, true]);
  });

  describe('the removal of a site', () => {
    const HOUR = 3_600_000;
    const rest = ['containers', 'proxy', 'kv', 'route'] as const;
    const withoutDns = rest.map((target) => change(target, 'delete'));
    const all = [...withoutDns, change('dns', 'delete')];
    const removal = { removal: true, drainSeconds: HOUR / 1000 };
    const teardown = ['delete route', 'delete kv', 'delete proxy', 'delete containers'];
    let clock: ReturnType<typeof testClock>;
    beforeEach(() => {
      clock = testClock();
    });
    const ago = (ms: number) => new Date(clock.date().getTime() - ms);
    /** Starts a run and lets it go as far as it can at this time. */
    const start = async (changes: readonly Change[], options: Parameters<typeof run>[1] = {}) => {
      const order: string[] = [];
      const drainStarts: Date[] = [];
      const ended = run(changes, { ...removal, clock, order, drainStarts, ...options });
      await new Promise(setImmediate);
      return { order, drainStarts, ended };
    };

    test('the drain starts with the delete of its DNS records', async () => {
      const { order, drainStarts, ended } = await start(all, { dnsRemovedAt: ago(2 * HOUR) });
      expect(order).toEqual(['delete dns']);
      expect(drainStarts).toEqual([clock.date()]);
      clock.advance(HOUR - 1);
      await new Promise(setImmediate);
      expect(order).toEqual(['delete dns']);
      clock.advance(1);
      await ended;
      expect(order).toEqual(['delete dns', ...teardown]);
    });

    test.each([
      ['half of it', HOUR / 2, HOUR / 2],
      ['one millisecond of it', HOUR - 1, 1],
      ['nothing of it', HOUR, 0],
      ['nothing of it, long ago', 100 * HOUR, 0],
      // The wall clock was set back.
      ['all of it', -HOUR, HOUR],
    ])('a drain of an earlier run continues; what is left: %s', async (_what, elapsed, left) => {
      const { order, drainStarts, ended } = await start(withoutDns, { dnsRemovedAt: ago(elapsed) });
      expect(clock.sleeps()).toEqual(left === 0 ? [] : [left]);
      expect(order).toEqual(left === 0 ? teardown : []);
      clock.advance(left);
      await ended;
      expect(order).toEqual(teardown);
      expect(drainStarts).toEqual([]);
    });

    test('a drain whose start is unknown starts now', async () => {
      const { order, drainStarts } = await start(withoutDns);
      expect([order, drainStarts, clock.sleeps()]).toEqual([[], [clock.date()], [HOUR]]);
    });

    test('no drain starts while a DNS record can’t be deleted', async () => {
      const { order, drainStarts, ended } = await start(all, {
        failing: { 'delete dns': new Error('busy') },
      });
      await ended;
      expect([order, drainStarts]).toEqual([[], []]);
    });

    test.each(['stopped', 'superseded'] as const)(
      'a run that is %s ends the drain, and deletes nothing else',
      async (which) => {
        const end = new AbortController();
        const { order, ended } = await start(
          withoutDns,
          which === 'stopped' ? { signal: end.signal } : { superseded: end.signal },
        );
        end.abort();
        const { steps } = await ended;
        expect(order).toEqual([]);
        expect(new Set(steps.values())).toEqual(new Set(['skipped']));
      },
    );

    test('a host without a drain deletes everything at once', async () => {
      const { order, ended } = await start(all, { drainSeconds: 0 });
      await ended;
      expect(order).toEqual(['delete dns', ...teardown]);
    });
  });

  test('a step that waits ends when its run is superseded: it has neither failed nor succeeded', async () => {
    const superseded = new AbortController();
    const { outcome, steps } = await run([change('kv', 'create'), change('dns', 'create')], {
      superseded: superseded.signal,
      waiting: 'create kv',
      before: () => superseded.abort(),
    });
    expect([outcome.done, outcome.failures]).toEqual([[], []]);
    expect(new Set(steps.values())).toEqual(new Set(['skipped']));
  });

  test('each step reports how long it took', async () => {
    const clock = testClock();
    const slow = { before: () => clock.advance(1234) };
    const { durations } = await run([change('kv', 'create')], { clock, ...slow });
    expect(durations).toEqual([1234]);
  });
});
