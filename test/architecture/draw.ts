import { writeFileSync } from 'node:fs';
import { drawRooms } from './picture.ts';
import { sources } from './tree.ts';

/** `npm run generate:picture`: draws the folders and their imports into docs/architecture.svg. */
const target = new URL('../../docs/architecture.svg', import.meta.url);
writeFileSync(target, await drawRooms(sources()));
