import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { apiDocument, stampOf } from '../../management/api-document.ts';

const TYPES = new URL('../../gitops/clients/generated/management-api.d.ts', import.meta.url);

test('the generated types of clients match the document (else: npm run generate:api)', async () => {
  const [stamp = '', ...lines] = readFileSync(TYPES, 'utf8').split('\n');
  expect(`${stamp}\n`).toBe(stampOf(await apiDocument(), lines.join('\n')));
});
