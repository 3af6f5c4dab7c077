/**
 * Node's HTTP modules without `import`, which would read all their exports: `WebSocket` of `node:http` loads all of
 * undici, and an idle tag server would need a fifth more memory.
 */
export const http = process.getBuiltinModule('node:http');

/** Loads OpenSSL with the first request over TLS. */
export const loadHttps = () => process.getBuiltinModule('node:https');

/** Loads the module for hashes and random bytes at its first use. */
export const loadCrypto = () => process.getBuiltinModule('node:crypto');
