import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** TypeScript in a checkout, JavaScript in the package. */
export const EXTENSION = extname(fileURLToPath(import.meta.url));

/** The stand-in's entry file: `node <TAG_SERVER_ENTRY>`. */
export const TAG_SERVER_ENTRY = fileURLToPath(new URL(`./main${EXTENSION}`, import.meta.url));
