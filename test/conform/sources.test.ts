import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Behaviour } from './behaviour.ts';
import { cloudflareBehaviours } from './cloudflare/behaviours.ts';
import { quotaBehaviours } from './cloudflare/quotas.ts';
import { googleBehaviours } from './google/behaviours.ts';
import { headings } from './headings.ts';
import { containerBehaviours } from './tag-server/index.ts';

const TABLES: readonly (readonly [name: string, behaviours: readonly Behaviour<never>[]])[] = [
  ['the tag server', containerBehaviours],
  ['Cloudflare', cloudflareBehaviours],
  ['Cloudflare’s quotas', quotaBehaviours],
  ['Google', googleBehaviours],
];

test('docs/conformance.md counts as many rows of the tag server as there are behaviours', () => {
  const text = readFileSync(new URL('../../docs/conformance.md', import.meta.url), 'utf8');
  const [, ...counts] = /(\d+) same, (\d+) differ, (\d+) not tried; \d+ containers/.exec(text) ?? [];
  expect(counts.reduce((sum, count) => sum + Number(count), 0)).toBe(containerBehaviours.length);
});

describe.each(TABLES)('the behaviours of %s', (_name, behaviours) => {
  test('each have a heading of docs/facts.md as their source', () => {
    const known = headings();
    expect(known).toContain('Tag server image, Health');
    expect(behaviours.length).toBeGreaterThan(0);
    expect(
      behaviours.filter(({ source }) => !known.has(source)).map(({ name, source }) => [name, source]),
    ).toEqual([]);
  });

  test('each have a name of their own', () => {
    const names = behaviours.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});
