import { writeFileSync } from 'node:fs';
import { execa } from 'execa';
import { apiDocument, keyedOperations, stampOf } from './api-document.ts';

/** `npm run generate:api`: writes the types of the API's clients from its OpenAPI document. */
const GENERATED = new URL('../gitops/clients/generated/', import.meta.url);

const document = await apiDocument();
const { stdout } = await execa('openapi-typescript', { input: JSON.stringify(document) });
const types = `${stdout.trim()}\n`;
writeFileSync(new URL('management-api.d.ts', GENERATED), `${stampOf(document, types)}${types}`);
writeFileSync(new URL('keyed-operations.ts', GENERATED), keyedOperations(document));
