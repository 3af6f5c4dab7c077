import { describe, expect, test } from 'vitest';
import type { Behaviour } from './behaviour.ts';
import { NotTried } from './not-tried.ts';
import { type OpenTarget, runTable, type Table } from './table.ts';

interface Light {
  on: boolean;
}

const behaviour = (name: string, check: Behaviour<Light>['check']): Behaviour<Light> => ({
  name,
  source: 'Lights',
  check,
});
const shines = behaviour('shines', async ({ on }) => {
  if (!on) throw new Error('it is dark');
});
const blinks = behaviour('blinks', async () => {});
const hangs = behaviour('hangs', () => new Promise(() => {}));

/** Runs the behaviours on a light; `closed` is how often it was closed. */
async function run(
  behaviours: readonly Behaviour<Light>[],
  {
    signal = new AbortController().signal,
    timeoutMs,
    open = {},
    openError,
    light = { on: true },
  }: {
    signal?: AbortSignal;
    timeoutMs?: number;
    open?: Partial<OpenTarget<Light>>;
    openError?: Error;
    light?: Light;
  } = {},
) {
  let closed = 0;
  const seen: string[] = [];
  const table: Table<Light> = {
    name: 'lights',
    behaviours,
    async open() {
      if (openError !== undefined) throw openError;
      const close = async () => {
        closed += 1;
        return { costs: ['1 W'], remains: [] };
      };
      return { target: light, subject: 'a lamp', close, ...open };
    },
  };
  const report = await runTable(table, {
    signal,
    onOpen: (name, subject) => seen.push(`${name}: ${subject}`),
    onRow: ({ name }) => seen.push(name),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  return { report, seen, closed, outcomes: report.rows.map(({ outcome, detail }) => [outcome, detail]) };
}

describe('a table', () => {
  test('says of each behaviour whether it is the same, in order, and closes the target', async () => {
    const { report, seen, closed } = await run([shines, blinks]);
    expect(report).toEqual({
      table: 'lights',
      subject: 'a lamp',
      rows: [
        { name: 'shines', source: 'Lights', outcome: 'same', detail: '' },
        { name: 'blinks', source: 'Lights', outcome: 'same', detail: '' },
      ],
      costs: ['1 W'],
      remains: [],
    });
    expect(seen).toEqual(['lights: a lamp', 'shines', 'blinks']);
    expect(closed).toBe(1);
  });

  test('says how a behaviour differs, with its causes and the evidence, and tries the others', async () => {
    const fails = behaviour('fails', async () => {
      throw new Error('no answer', { cause: new Error('the wire is cut') });
    });
    const { outcomes, closed } = await run([shines, fails, blinks], {
      light: { on: false },
      open: { evidence: async () => 'log: dark' },
    });
    expect(outcomes).toEqual([
      ['differs', 'it is dark\nlog: dark'],
      ['differs', 'no answer\nthe wire is cut\nlog: dark'],
      ['same', ''],
    ]);
    expect(closed).toBe(1);
  });

  test('says that a behaviour differs if it takes too long', async () => {
    const { outcomes } = await run([hangs, blinks], { timeoutMs: 20 });
    expect(outcomes).toEqual([
      ['differs', 'it took more than 20 ms'],
      ['same', ''],
    ]);
  });

  test.each([
    ['throws NotTried', () => new NotTried('buy a lamp')],
    [
      'throws an error with the cause NotTried',
      () => new Error('dark', { cause: new NotTried('buy a lamp') }),
    ],
  ])('reports a behaviour that %s as not tried', async (_how, error) => {
    const needy = behaviour('needs a lamp', async () => {
      throw error();
    });
    const { outcomes } = await run([needy, blinks]);
    expect(outcomes).toEqual([
      ['not tried', 'buy a lamp'],
      ['same', ''],
    ]);
  });

  test('ignores an outcome, good or bad, during which the network was lost', async () => {
    const losses = [null, 'no power', null, null, null, 'no power'];
    const { outcomes } = await run([shines, blinks, shines], {
      light: { on: false },
      open: { lost: () => losses.shift() ?? null },
    });
    expect(outcomes).toEqual([
      ['not tried', 'no power'],
      ['same', ''],
      ['not tried', 'no power'],
    ]);
  });

  test.each([
    [new NotTried('set LAMP'), 'set LAMP'],
    [new Error('the lamp exploded'), 'the lamp exploded'],
  ])('tries nothing where the target can’t be opened: %s', async (openError, detail) => {
    const { outcomes, report, closed } = await run([shines, blinks], { openError });
    expect(outcomes).toEqual([
      ['not tried', detail],
      ['not tried', detail],
    ]);
    expect(report.subject).toBe('');
    expect(closed).toBe(0);
  });

  test('ends at once where it is interrupted, and closes the target', async () => {
    const interrupted = new AbortController();
    const interrupts = behaviour('interrupts', () => {
      interrupted.abort();
      return new Promise(() => {});
    });
    const { outcomes, closed } = await run([blinks, interrupts, shines], { signal: interrupted.signal });
    expect(outcomes).toEqual([
      ['same', ''],
      ['not tried', 'the run was interrupted'],
      ['not tried', 'the run was interrupted'],
    ]);
    expect(closed).toBe(1);
  });

  test('says, if closing fails, that it is unknown what remains', async () => {
    const { report } = await run([blinks], { open: { close: () => Promise.reject(new Error('no power')) } });
    expect(report.remains).toEqual(['it is unknown what remains: no power']);
  });
});
