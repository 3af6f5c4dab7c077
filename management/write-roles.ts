import { writeFileSync } from 'node:fs';
import { rolesDocument } from './api-document.ts';

/** `npm run generate:roles`: writes docs/roles.md from the routes. */
writeFileSync(new URL('../docs/roles.md', import.meta.url), await rolesDocument());
