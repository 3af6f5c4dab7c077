import { writeFileSync } from 'node:fs';
import { runbooksReference } from './runbooks-reference.ts';

/** `npm run generate:runbooks`: writes the reference of all checks, docs/runbooks.md. */
writeFileSync(new URL('../../docs/runbooks.md', import.meta.url), runbooksReference());
