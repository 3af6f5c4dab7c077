import { createServer } from 'node:http';
import { exportJWK, importJWK, type JWK, SignJWT } from 'jose';
import type { Instance } from './home.ts';

export const ISSUER = 'urn:tagyard:embedded';
export const AUDIENCE = 'tagyard';
/** The subject of the command line; it is a super-admin of the embedded management API. */
export const OPERATOR = 'tagyard-cli';

const DEFAULT_LIFETIME = '12h';

/** Mints a development JWT. Only the embedded instance accepts its issuer. */
export async function mintToken(
  instance: Instance,
  subject: string,
  lifetime = DEFAULT_LIFETIME,
): Promise<string> {
  const key = await importJWK(instance.signingKey as JWK, 'ES256'); // written by exportJWK
  return await new SignJWT({ email: `${subject}@tagyard.localhost` })
    .setProtectedHeader({ alg: 'ES256', kid: String(instance.signingKey.kid) })
    .setSubject(subject)
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setIssuedAt()
    .setExpirationTime(lifetime)
    .sign(key);
}

/** Serves the public key as a JWKS on loopback. */
export async function serveJwks(
  instance: Instance,
  port: number,
): Promise<{ url: string; close(): Promise<void> }> {
  const { d: _private, ...rest } = instance.signingKey;
  const publicKey = await exportJWK(await importJWK(rest as JWK, 'ES256')); // without `d` it is the public key
  const body = JSON.stringify({
    keys: [{ ...publicKey, kid: instance.signingKey.kid, alg: 'ES256', use: 'sig' }],
  });
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/jwk-set+json').end(body);
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen({ port, host: '127.0.0.1' }, resolve);
  await promise;
  return {
    url: `http://127.0.0.1:${port}/jwks.json`,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}
