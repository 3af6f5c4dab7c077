import { writeFileSync } from 'node:fs';
import { settingsReference } from './settings-reference.ts';

/** `npm run generate:settings`: writes the reference of all settings, docs/reference/settings.md, from their schemas. */
writeFileSync(new URL('../../docs/reference/settings.md', import.meta.url), settingsReference());
