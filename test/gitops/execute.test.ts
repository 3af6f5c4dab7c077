import { describe, expect, it } from 'vitest';
import {
  type Applier,
  type Change,
  TARGETS,
  type Target,
  TerminalError,
} from '../../gitops/appliers/contract.ts';
import { executeSite, type SiteRun } from '../../gitops/execute.ts';

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
  options: Partial<SiteRun> & { failing?: Record<string, Error> } = {},
) {
  const order: string[] = [];
  const steps = new Map<string, string>();
  const appliers = TARGETS.map((target): [Target, Applier] => [
    target,
    {
      target,
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
    { changes, unobserved: new Map(), removal: false, superseded: new AbortController().signal, ...options },
    {
      appliers: new Map(appliers),
      drainSeconds: 0,
      onStep: ({ op, key, status }) => steps.set(`${op} ${key}`, status),
    },
    new AbortController().signal,
  );
  return { order, outcome, steps };
}

const everything = [...TARGETS].flatMap((target) => [
  change(target, 'delete', `old ${target}`),
  change(target, 'create'),
]);

describe('executeSite', () => {
  it('brings up in order, then takes down in reverse', async () => {
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

  it('skips what depends on a failed step, the removal of what still serves included', async () => {
    const { order, outcome, steps } = await run(everything, {
      failing: { 'create proxy': new Error('refused') },
    });
    expect(order).toEqual(['create containers']);
    expect(outcome.failures).toMatchObject([{ change: { key: 'proxy' } }]);
    expect(outcome.terminal).toBe(false);
    expect(steps.get('delete old containers')).toBe('skipped');
  });

  it('tells a failure that trying again won’t mend', async () => {
    const { outcome } = await run(everything, {
      failing: { 'create kv': new TerminalError('no permission') },
    });
    expect(outcome.terminal).toBe(true);
  });

  it('does nothing that comes after a target that could not be read', async () => {
    const unobserved = new Map<Target, Error>([['kv', new Error('500')]]);
    const up = await run(everything, { unobserved });
    expect(up.order).toEqual(['create containers', 'create proxy']);
    expect(up.outcome.unobserved?.message).toBe('500');
  });

  it('finishes a removal though a container won’t go', async () => {
    const down = [...TARGETS].map((target) => change(target, 'delete'));
    const { order, outcome } = await run(down, {
      removal: true,
      failing: { 'delete containers': new Error('busy') },
    });
    expect(order).toEqual(['delete dns', 'delete route', 'delete kv', 'delete proxy']);
    expect(outcome.failures).toHaveLength(1);
  });
});
