import { expect, test } from 'vitest';
import { brokenReferences } from './architecture/references.ts';
import { files } from './architecture/tree.ts';

test('links and comments refer to headings, facts and rules that exist', () => {
  const documents = files('**/*.md');
  const texts = files('**/*.{ts,tsx,hbs,yaml,sh,tpl}', '.env.example').filter(
    // These name headings that don't exist, on purpose.
    ({ path }) => !['test/conform/report.test.ts', 'test/architecture-references.test.ts'].includes(path),
  );
  expect(documents.length).toBeGreaterThan(20);
  expect(brokenReferences([...documents, ...texts], documents)).toEqual([]);
});

const DOCUMENTS = [
  { path: 'docs/facts.md', text: '# Facts\n\n## Tag server image\n\n### Health\n' },
  { path: 'docs/reconciler.md', text: '# Rules\n\n## 1. A trigger carries no data\n' },
];

test.each([
  ['docs/a.md', 'See [one](reconciler.md#2-another).'],
  ['docs/a.md', 'See [one](#nothing).'],
  ['gitops/a.ts', '// See docs/facts.md, Lights.'],
  ['gitops/a.ts', '// See docs/reconciler.md,\n// rule 17.'],
])('a reference to what doesn’t exist is refused in %s: %s', (path, text) => {
  const all = [...DOCUMENTS, { path: 'docs/a.md', text: '# A' }];
  expect(brokenReferences([{ path, text }], all)).toHaveLength(1);
});

test.each([
  [
    'docs/a.md',
    'See [one](reconciler.md#1-a-trigger-carries-no-data), [two](#a) and https://host.example/#x.',
  ],
  ['gitops/a.ts', '// See docs/facts.md, Tag server image, Health, and docs/reconciler.md, rule 1.'],
])('a reference to what exists is allowed in %s: %s', (path, text) => {
  const all = [...DOCUMENTS, { path: 'docs/a.md', text: '# A' }];
  expect(brokenReferences([{ path, text }], all)).toEqual([]);
});
