import { fileURLToPath } from 'node:url';

/**
 * On import, gives every process that this process starts a cache of compiled code. Compiling takes a third to a half
 * of the start of a daemon or the command line, and the tests start hundreds of them.
 */
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../../node_modules/.cache/node', import.meta.url));
