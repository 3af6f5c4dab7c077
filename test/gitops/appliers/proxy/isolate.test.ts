import { describe, expect, test } from 'vitest';
import { TerminalError } from '../../../../base/errors.ts';
import {
  type ConfigFault,
  type FileChange,
  isolate,
} from '../../../../gitops/appliers/proxy/nginx/isolate.ts';

type Files = ReadonlyMap<string, string>;

/**
 * A configuration test that refuses a file with a text `bad…`, and two files with the same text `name …`. With `names`,
 * its error names the bad file.
 */
function checker({ names }: { names: boolean }) {
  const state = { tests: 0 };
  const test = async (files: Files): Promise<ConfigFault | null> => {
    state.tests += 1;
    for (const [name, text] of files) {
      if (text.startsWith('bad'))
        return { error: new TerminalError(`${name} is bad`), file: names ? name : null };
    }
    const claimed = [...files.values()].filter((text) => text.startsWith('name'));
    const twice = new Set(claimed).size < claimed.length;
    return twice ? { error: new TerminalError('conflicting server name'), file: null } : null;
  };
  return { state, test };
}

const many = (count: number, bad: readonly number[]): FileChange[] =>
  Array.from({ length: count }, (_, index) => ({
    name: `${String(index).padStart(4, '0')}.conf`,
    text: bad.includes(index) ? 'bad' : 'good',
  }));
const ours = () => true;

describe('one bad vhost', () => {
  test.each([0, 1, 499, 500, 998, 999])(
    'at place %i of 1,000 is found in at most 2·log2(N)+2 tests',
    async (index) => {
      const { state, test } = checker({ names: false });
      const { files, refused } = await isolate(new Map(), many(1_000, [index]), test, ours);
      expect([...refused.keys()].map(({ name }) => name)).toEqual([`${String(index).padStart(4, '0')}.conf`]);
      expect(files.size).toBe(999);
      expect(state.tests).toBeLessThanOrEqual(2 * Math.log2(1_000) + 2);
    },
  );

  test('is found with two tests if the error names it', async () => {
    const { state, test } = checker({ names: true });
    const { refused } = await isolate(new Map(), many(1_000, [500]), test, ours);
    expect([...refused.values()].map(({ message }) => message)).toEqual(['0500.conf is bad']);
    expect(state.tests).toBe(2);
  });

  test('doesn’t replace its old file', async () => {
    const { test } = checker({ names: true });
    const base = new Map([['a.conf', 'good before']]);
    const { files } = await isolate(base, [{ name: 'a.conf', text: 'bad' }], test, ours);
    expect(files).toEqual(base);
  });

  test('is found, also if others are bad', async () => {
    const { test } = checker({ names: false });
    const { files, refused } = await isolate(new Map(), many(20, [3, 4, 19]), test, ours);
    expect([...refused.keys()].map(({ name }) => name).sort()).toEqual([
      '0003.conf',
      '0004.conf',
      '0019.conf',
    ]);
    expect(files.size).toBe(17);
  });
});

describe('two files that claim one name', () => {
  test.each([
    [
      'the new one gives way to the existing one',
      [['b.conf', 'name x']],
      [{ name: 'a.conf', text: 'name x' }],
      ['a.conf'],
    ],
    [
      'the later of two new ones gives way',
      [],
      [
        { name: 'b.conf', text: 'name x' },
        { name: 'a.conf', text: 'name x' },
      ],
      ['a.conf'],
    ],
    [
      'no change is refused if the holder releases the name in the same batch',
      [['a.conf', 'name x']],
      [
        { name: 'a.conf', text: null },
        { name: 'b.conf', text: 'name x' },
      ],
      [],
    ],
  ] as const)('%s', async (_case, base, changes, expected) => {
    const { test } = checker({ names: false });
    const { refused } = await isolate(new Map(base), changes, test, ours);
    expect([...refused.keys()].map(({ name }) => name)).toEqual(expected);
  });
});

describe('a file that went bad by itself', () => {
  const base = new Map([
    ['a.conf', 'good'],
    ['b.conf', 'bad since'],
  ]);

  test.each([true, false])('is dropped, and the other changes are made (named: %s)', async (names) => {
    const { test } = checker({ names });
    const { files, refused } = await isolate(base, [{ name: 'c.conf', text: 'good' }], test, ours);
    expect([...files.keys()]).toEqual(['a.conf', 'c.conf']);
    expect(refused.size).toBe(0);
  });

  test('is set aside if it has no ownership mark, and blocks no other file', async () => {
    const { test } = checker({ names: true });
    const changes = [{ name: 'c.conf', text: 'good' }];
    const { files, strange } = await isolate(base, changes, test, (text) => text !== 'bad since');
    expect([...files.keys()]).toEqual(['a.conf', 'c.conf']);
    expect([...strange]).toEqual([['b.conf', 'bad since']]);
  });
});
