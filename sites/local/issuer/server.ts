import { createServer, type RequestListener } from 'node:http';
import { exportJWK, importJWK, type JWK } from 'jose';
import { optional } from '../../../base/runtime/optional.ts';
import type { ProviderOptions } from './provider.ts';

/**
 * Serves the issuer of an embedded instance on loopback: an OpenID provider, and the keys under `/jwks.json`. The
 * provider is loaded at the first request that needs it, because most instances only need the keys.
 */
export async function serveIssuer(
  options: ProviderOptions,
): Promise<{ readonly jwksUrl: string; close(): Promise<void> }> {
  const keys = await keysOf(options.signingKey);
  let provider: Promise<RequestListener> | null = null;
  const load = async () => {
    const { buildProvider } = await optional('oidc-provider', () => import('./provider.ts'));
    return buildProvider(options);
  };

  const server = createServer((request, response) => {
    if (request.url === '/jwks.json') {
      response.setHeader('content-type', 'application/jwk-set+json').end(keys);
      return;
    }
    provider ??= load();
    provider.then(
      (serve) => serve(request, response),
      (error: unknown) => {
        provider = null;
        const reason = error instanceof Error ? error.message : String(error);
        response.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' }).end(`${reason}\n`);
      },
    );
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const { hostname, port } = new URL(options.url);
  server.once('error', reject).listen({ port: Number(port), host: hostname }, resolve);
  await promise;
  return {
    jwksUrl: `${options.url}/jwks.json`,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

/** The public key as a JWKS. */
async function keysOf(signingKey: JWK): Promise<string> {
  const { d: _private, ...rest } = signingKey;
  const publicKey = await exportJWK(await importJWK(rest, 'ES256'));
  return JSON.stringify({ keys: [{ ...publicKey, kid: signingKey.kid, alg: 'ES256', use: 'sig' }] });
}
