import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { apiDocument, stampOf } from '../../management/api-document.ts';
import { World } from '../fixtures/management/world.ts';

const TYPES = new URL('../../gitops/clients/management-api.d.ts', import.meta.url);

it('the types of clients are those of the document, as they were generated (else: npm run generate:api)', async () => {
  const [stamp = '', ...lines] = readFileSync(TYPES, 'utf8').split('\n');
  expect(`${stamp}\n`).toBe(stampOf(await apiDocument(), lines.join('\n')));
});

it('the document that they are made from is the one that is served', async () => {
  const world = await World.open();
  try {
    expect((await world.call('GET', '/openapi.json')).body).toEqual(
      JSON.parse(JSON.stringify(await apiDocument())),
    );
  } finally {
    await world.close();
  }
});
