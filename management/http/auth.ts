import type { FastifyRequest } from 'fastify';
import { type CryptoKey, errors, type JWTPayload, type JWTVerifyResult, jwtVerify } from 'jose';
import type { Actor } from '../db/database.ts';
import { ProblemError } from './errors.ts';
import { createKeySource, type JwksOptions } from './jwks.ts';

/** Asymmetric only: a public key must never pass as an HMAC secret (RFC 8725, 2.1 and 3.1). */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
const CLOCK_TOLERANCE_SECONDS = 60;
/** Characters; longer ones aren't even taken apart. */
const LONGEST_TOKEN = 8_192;
/** Tokens whose signature is remembered; the oldest is forgotten first. */
const REMEMBERED = 1_000;

export interface AuthOptions {
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
  readonly jwks?: JwksOptions;
}

/** Who calls, from an `authorization` header; throws the problem to answer otherwise. */
export type Authenticate = (authorization: string | undefined) => Promise<Actor>;

/** A token that passed, with all that its passing depended on beside the clock. */
interface Passed {
  readonly key: CryptoKey;
  readonly header: JWTVerifyResult['protectedHeader'];
  readonly payload: JWTPayload;
  readonly actor: Actor;
}

/**
 * Checks bearer tokens (RFC 7519, RFC 8725) against the issuer's keys, by the one URL of the configuration. That a
 * signature is good under a key doesn't change, so it is worked out once; which key counts for the token, and whether
 * its time has come and not gone, is asked at every request.
 */
export function createAuthenticator({ jwksUrl, issuer, audience, jwks }: AuthOptions): Authenticate {
  const keys = createKeySource(new URL(jwksUrl), jwks);
  const passed = new Map<string, Passed>();

  async function verify(token: string): Promise<Actor> {
    const { payload, protectedHeader, key } = await jwtVerify(token, keys, {
      issuer,
      audience,
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      requiredClaims: ['exp', 'sub'],
    });
    const actor = actorOf(payload);
    passed.set(token, { key, header: protectedHeader, payload, actor });
    const [oldest] = passed.keys();
    if (passed.size > REMEMBERED && oldest !== undefined) passed.delete(oldest);
    return actor;
  }

  return async (authorization) => {
    const token = /^Bearer +([^\s]+)$/i.exec(authorization ?? '')?.[1];
    if (token === undefined) throw new ProblemError('missing_token');
    if (token.length > LONGEST_TOKEN) throw new ProblemError('invalid_token', 'the token is too long');
    try {
      const before = passed.get(token);
      if (before !== undefined) {
        // Another object once the keys were fetched again, be it the same key: then the signature is checked anew.
        if ((await keys(before.header)) === before.key && isTimely(before.payload)) return before.actor;
        passed.delete(token);
      }
      return await verify(token);
    } catch (cause) {
      throw problemOf(cause);
    }
  };
}

/** As `jwtVerify` judges `exp` and `nbf`, which it has found to be numbers where they are there. */
function isTimely({ exp = 0, nbf = 0 }: JWTPayload): boolean {
  const now = Math.floor(Date.now() / 1000);
  return exp > now - CLOCK_TOLERANCE_SECONDS && nbf <= now + CLOCK_TOLERANCE_SECONDS;
}

function actorOf({ sub, name, email }: JWTPayload): Actor {
  if (typeof sub !== 'string' || sub === '')
    throw new ProblemError('invalid_token', 'the token names no subject');
  return {
    subject: sub,
    name: typeof name === 'string' && name !== '' ? name : sub,
    email: typeof email === 'string' && email.includes('@') ? email : `${sub}@users.invalid`,
  };
}

/** Faults of the token are the caller's; that the keys can't be had is not. */
function problemOf(cause: unknown): ProblemError {
  if (cause instanceof ProblemError) return cause;
  if (cause instanceof errors.JWTExpired) return new ProblemError('expired_token', undefined, {}, { cause });
  const fetching = cause instanceof errors.JWKSTimeout || cause instanceof errors.JWKSInvalid;
  const generic = cause instanceof errors.JOSEError && cause.code === errors.JOSEError.code;
  if (!(cause instanceof errors.JOSEError) || fetching || generic) {
    return new ProblemError('auth_unavailable', undefined, {}, { cause });
  }
  return new ProblemError('invalid_token', undefined, {}, { cause });
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on every route behind the token check. */
    caller: Actor | null;
  }
}

export function callerOf(request: FastifyRequest): Actor {
  if (request.caller === null) throw new Error(`${request.routeOptions.url} is not behind the token check`);
  return request.caller;
}
