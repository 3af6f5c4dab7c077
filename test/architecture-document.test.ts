import { describe, expect, test } from 'vitest';
import { missingFolders, wrongFloors, wrongWalks } from './architecture/document.ts';

/** Joins the lines of a small document that breaks (or keeps) one rule. The tests detect rules that can never fail. */
const lines = (...all: string[]) => all.join('\n');

describe('the walks', () => {
  const walk = (after: string, counts: string) =>
    lines(
      '# Architecture',
      '## Five walks',
      'Each row is a step.',
      '### A commit',
      '| step | before | after |',
      '|---|---|---|',
      `| read | \`old.ts\` | ${after} |`,
      '',
      'The paths of "after" are below `gitops/`.',
      '',
      `Before: 1 distinct files in 1 entries; after: ${counts}.`,
      '## Next',
    );
  const existing = new Set(['gitops/loop/loop.ts', 'gitops/loop/retries.ts']);
  const after = '`loop/loop.ts` → `retries.ts` → `loop.ts`';

  test('may name a file without its folder: it is then in the folder of the file before', () => {
    expect(wrongWalks(walk(after, '2 distinct files in 3 entries'), existing)).toEqual([]);
  });

  test('must state the right numbers of files and entries', () => {
    expect(wrongWalks(walk(after, '3 distinct files in 3 entries'), existing)).toEqual([
      'A commit: the table has 2 distinct files in 3 entries',
    ]);
  });

  test('must name files that exist', () => {
    expect(
      wrongWalks(walk('`loop/gone.ts` → `<name>/a.ts`', '2 distinct files in 2 entries'), existing),
    ).toEqual(["A commit: gitops/loop/gone.ts doesn't exist"]);
  });
});

describe('the table of floors', () => {
  const floors = [
    { number: 1, rooms: ['gitops/http/**', 'gitops/{env,main}.ts'] },
    { number: 0, rooms: ['gitops/base/**'] },
  ];
  const document = (first: string) =>
    lines(
      '## Who may import whom',
      '| floor | folders of `gitops/` |',
      '|---|---|',
      `| 1 | ${first} |`,
      '| 0 | `base/` |',
      '',
      '| floor | folders of `edge/` |',
      '| 0 | `kit/` |',
      '## Next',
    );

  test('must have exactly the rooms of the rule', () => {
    expect(wrongFloors(document('`http/`, `env.ts`; `main.ts`'), 'gitops', floors)).toEqual([]);
    expect(wrongFloors(document('`http/`, `env.ts`'), 'gitops', floors)).toEqual([
      'docs/architecture.md lacks floor 1 main.ts of gitops',
    ]);
    expect(wrongFloors(document('`http/`, `env.ts`, `main.ts`, `cli/`'), 'gitops', floors)).toEqual([
      'docs/architecture.md has floor 1 cli/ of gitops',
    ]);
  });
});

test('the table of folders must have each folder of a part', () => {
  const document = lines(
    '## Folders',
    '| folder | content |',
    '|---|---|',
    '| `gitops/base/`, `loop/` | what several folders use |',
    '| `plugins/<name>/` | one plugin |',
    '| `test/` | `support/` has what several tests use |',
    '## Next',
  );
  const paths = ['gitops/base/a.ts', 'gitops/loop/b.ts', 'plugins/a/index.ts', 'test/support/c.ts'];
  expect(missingFolders(document, paths)).toEqual([]);
  expect(missingFolders(document, [...paths, 'gitops/pass/d.ts'])).toEqual([
    "docs/architecture.md doesn't name gitops/pass/",
  ]);
});
