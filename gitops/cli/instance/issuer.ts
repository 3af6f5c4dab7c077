import { importJWK, type JWK, SignJWT } from 'jose';
import type { Instance } from './home.ts';

export const AUDIENCE = 'tagyard';
/** The subject of the command line; it is an operator of the embedded management API. */
export const OPERATOR = 'tagyard-cli';
/** The demo client's members. */
export const DEMO_OWNER = 'demo-owner';
export const DEMO_VIEWER = 'demo-viewer';

/** The OpenID client id of management at the instance's provider. */
export const LOGIN_CLIENT = 'tagyard-management';

const DEFAULT_LIFETIME = '12h';

/** The URL of the instance's OpenID provider, which every token names as its issuer. */
export function issuerOf({ ports }: Pick<Instance, 'ports'>): string {
  return `http://127.0.0.1:${ports.issuer}`;
}

/** The instance's private signing key. */
export function signingKeyOf({ signingKey }: Pick<Instance, 'signingKey'>): JWK {
  return signingKey as JWK; // written by exportJWK
}

/** Mints a development JWT. Only the embedded instance accepts its issuer. */
export async function mintToken(
  instance: Instance,
  subject: string,
  lifetime = DEFAULT_LIFETIME,
): Promise<string> {
  const key = await importJWK(signingKeyOf(instance), 'ES256');
  return await new SignJWT({ email: `${subject}@tagyard.localhost` })
    .setProtectedHeader({ alg: 'ES256', kid: String(instance.signingKey.kid) })
    .setSubject(subject)
    .setIssuer(issuerOf(instance))
    .setAudience(AUDIENCE)
    .setIssuedAt()
    .setExpirationTime(lifetime)
    .sign(key);
}
