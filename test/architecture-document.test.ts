import { describe, expect, test } from 'vitest';
import { missingFolders, wrongFloors } from './architecture/document.ts';

/** Joins the lines of a small document that breaks (or keeps) one rule. The tests detect rules that can never fail. */
const lines = (...all: string[]) => all.join('\n');

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
