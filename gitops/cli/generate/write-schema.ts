import { readFileSync, writeFileSync } from 'node:fs';
import { manifestJsonSchema } from '../../../sites/manifest/json-schema.ts';

/** `npm run generate:schema`: generates `sites/schema.json` from the manifest's schema and its commented example. */
const sites = new URL('../../../sites/', import.meta.url);
const example = readFileSync(new URL('example.yaml', sites), 'utf8');
writeFileSync(new URL('schema.json', sites), `${JSON.stringify(manifestJsonSchema(example), null, 2)}\n`);
