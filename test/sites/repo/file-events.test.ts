import { expect, test } from 'vitest';
import { parseEvents } from '../../../sites/repo/file-events.ts';

const NONE = '0'.repeat(40);
const [a, b, c] = ['a', 'b', 'c'].map((digit) => digit.repeat(40)) as [string, string, string];
type Line = readonly [oldMode: string, newMode: string, oldId: string, newId: string, path: string];

const commit = (revision: string, parent: string, ...lines: Line[]) =>
  [
    `${revision} ${parent}\0`,
    ...lines.flatMap(([oldMode, newMode, oldId, newId, path], index) => [
      `${index === 0 ? '\n' : ''}:${oldMode} ${newMode} ${oldId} ${newId} X\0${path}\0`,
    ]),
  ].join('');
const added = (path: string, id: string, mode = '100644'): Line => ['000000', mode, NONE, id, path];
const removed = (path: string, id: string): Line => ['100644', '000000', id, NONE, path];
const eventsOf = (...lines: Line[]) =>
  parseEvents(Buffer.from(commit(a, b, ...lines)), new Set(['shop'])).events.get('shop');

test.each<[string, Line[], object]>([
  ['an added file', [added('shop.yaml', b)], { blob: b, isNew: true, gone: null }],
  ['a changed file', [['100644', '100755', a, b, 'shop.yaml']], { blob: b, isNew: false, gone: null }],
  ['a file that is now a link', [['100644', '120000', a, b, 'shop.yaml']], { blob: null, gone: null }],
  [
    'a file that is now a folder',
    [removed('shop.yaml', a), added('shop.yaml', c, '040000'), added('shop.yaml/x', b)],
    { blob: null, isNew: false, gone: null },
  ],
  ['a removed file', [removed('shop.yaml', a)], { gone: { movedTo: null, hiddenBy: null } }],
  [
    'a file that gets another ending',
    [removed('shop.yaml', a), added('shop.yml', b)],
    { gone: { movedTo: 'shop.yml', hiddenBy: null } },
  ],
  [
    'a file that moves into a folder',
    [added('old', c, '040000'), added('old/Shop.yaml', b), removed('shop.yaml', a)],
    { gone: { movedTo: 'old/Shop.yaml', hiddenBy: null } },
  ],
  [
    'a file that gets another name and keeps its content',
    [added('other', a), removed('shop.yaml', a)],
    { gone: { movedTo: 'other', hiddenBy: null } },
  ],
  [
    'a removed file beside an added submodule',
    [removed('shop.yaml', a), added('sites', c, '160000')],
    { gone: { movedTo: null, hiddenBy: 'sites' } },
  ],
  [
    'a file that comes back from a folder',
    [removed('old/shop.yaml', a), added('shop.yaml', b)],
    { blob: b, isNew: false },
  ],
  [
    'an added file with the content of a removed one',
    [removed('other', b), added('shop.yaml', b)],
    { blob: b, isNew: false },
  ],
])('%s is one event of its commit', (_what, lines, expected) => {
  expect(eventsOf(...lines)).toMatchObject([{ revision: a, ...expected }]);
});

test('events are in the order of the commits, and each page names the start of the next page', () => {
  const output = [
    commit(a, `${b} ${c}`, ['100644', '100644', a, b, 'shop.yaml']),
    commit(b, c),
    commit(c, '', added('shop.yaml', a), added('other.yaml', a)),
  ].join('');
  const page = parseEvents(Buffer.from(output), new Set(['shop']));
  expect([...page.events.keys()]).toEqual(['shop']);
  expect(page.events.get('shop')?.map(({ revision }) => revision)).toEqual([a, c]);
  expect(page).toMatchObject({ commits: 3, next: null });
  expect(parseEvents(Buffer.from(commit(a, `${b} ${c}`)), new Set()).next).toBe(b);
  expect(parseEvents(Buffer.from(''), new Set())).toMatchObject({ commits: 0, next: null });
});

test('a path may have the form of a commit’s id, and may contain any character', () => {
  const events = eventsOf(added(a, c), added('x\ny\t', b), added('shop.yaml', b));
  expect(events).toMatchObject([{ blob: b }]);
});
