import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { KEYED_OPERATIONS } from '../../base/client/generated/keyed-operations.ts';
import { apiDocument, keyedOperations, stampOf } from '../../management/api-document.ts';

const TYPES = new URL('../../base/client/generated/management-api.d.ts', import.meta.url);

test('the generated types of clients match the document (else: npm run generate:api)', async () => {
  const [stamp = '', ...lines] = readFileSync(TYPES, 'utf8').split('\n');
  expect(`${stamp}\n`).toBe(stampOf(await apiDocument(), lines.join('\n')));
});

test('the generated list of keyed operations matches the document', async () => {
  const list = new URL('../../base/client/generated/keyed-operations.ts', import.meta.url);
  expect(readFileSync(list, 'utf8')).toBe(keyedOperations(await apiDocument()));
  expect(KEYED_OPERATIONS).toContain('POST /server-containers');
});

test('the document’s texts have the right article before each word', async () => {
  const texts = textsOf(await apiDocument());
  expect(texts).toContain('Revoke an invitation to an organisation');
  expect(texts.filter((text) => /\ba [aeio]|\ban [bcdgjkpqtvwyz]/i.test(text))).toEqual([]);
});

/** All summaries and descriptions in a document. */
function textsOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    typeof member === 'string' && /^(?:summary|description)$/.test(key) ? [member] : textsOf(member),
  );
}
