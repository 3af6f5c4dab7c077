import { fileURLToPath } from 'node:url';

/**
 * A folder for `NODE_COMPILE_CACHE`: compiling is a third to a half of a start of a daemon or of the command line, and
 * the tests start hundreds.
 */
export const COMPILE_CACHE = fileURLToPath(new URL('../../node_modules/.cache/node', import.meta.url));
