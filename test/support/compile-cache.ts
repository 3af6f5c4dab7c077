import { fileURLToPath } from 'node:url';

/**
 * On import, gives every process that this one starts a cache of compiled code: compiling is a third to a half of a start of
 * a daemon or of the command line, and the tests start hundreds.
 */
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../../node_modules/.cache/node', import.meta.url));
