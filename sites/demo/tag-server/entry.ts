import { fileURLToPath } from 'node:url';

/** The stand-in's entry file: `node <TAG_SERVER_ENTRY>`. */
export const TAG_SERVER_ENTRY = fileURLToPath(new URL('./main.ts', import.meta.url));
