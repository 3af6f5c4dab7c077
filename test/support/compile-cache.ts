import { fileURLToPath } from 'node:url';

/**
 * A folder for `NODE_COMPILE_CACHE`: compiling takes a third to a half of the start of a daemon or of the command
 * line, and the tests start hundreds of them.
 */
export const COMPILE_CACHE = fileURLToPath(new URL('../../node_modules/.cache/node', import.meta.url));
