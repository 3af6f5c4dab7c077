import { fileURLToPath } from 'node:url';

/** The file that Node runs: `node <TAG_SERVER_ENTRY>`. */
export const TAG_SERVER_ENTRY = fileURLToPath(new URL('./main.ts', import.meta.url));
