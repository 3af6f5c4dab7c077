import { writeFileSync } from 'node:fs';
import { execa } from 'execa';
import { apiDocument, stampOf } from './api-document.ts';

/** `npm run generate:api`: writes the types of the API's clients from its OpenAPI document. */
const document = await apiDocument();
const { stdout } = await execa('openapi-typescript', { input: JSON.stringify(document) });
const types = `${stdout.trim()}\n`;
writeFileSync(
  new URL('../gitops/clients/generated/management-api.d.ts', import.meta.url),
  `${stampOf(document, types)}${types}`,
);
