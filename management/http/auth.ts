import type { FastifyRequest } from 'fastify';
import { type CryptoKey, errors, type JWTPayload, type JWTVerifyResult, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { type Clock, systemClock } from '../../base/clock.ts';
import { replaceHidden } from '../../base/text.ts';
import { isTokenSubject } from '../../sites/requests/token-subject.ts';
import type { Actor } from '../db/database.ts';
import { ManagementProblem } from './errors.ts';
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
/** Characters. Longer tokens are refused before they are parsed. */
const LONGEST_TOKEN = 8_192;
/** Verified tokens that are kept. */
const MOST_VERIFIED = 1_000;

interface AuthOptions {
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
  /** The claim that says who the caller is. Default: `sub`. */
  readonly subjectClaim?: string;
  readonly jwks?: JwksOptions;
  readonly clock?: Clock;
}

/** The caller that an `authorization` header identifies. If there is none, throws the problem to answer. */
export type Authenticate = (authorization: string | undefined) => Promise<Actor>;

/** A token whose signature is valid under `key`. */
interface VerifiedToken {
  readonly key: CryptoKey;
  readonly header: JWTVerifyResult['protectedHeader'];
  readonly payload: JWTPayload;
  readonly actor: Actor;
}

/**
 * Checks bearer tokens (RFC 7519, RFC 8725) against the keys of the configured issuer. A signature that is valid under
 * a key stays valid, so it is verified once. Which key applies to the token, and its `exp` and `nbf`, are checked on
 * every request.
 */
export function createAuthenticator(options: AuthOptions): Authenticate {
  const { jwksUrl, issuer, audience, subjectClaim = 'sub', jwks, clock = systemClock } = options;
  const keys = createKeySource(new URL(jwksUrl), { clock, ...jwks });
  const verified = new LRUCache<string, VerifiedToken>({ max: MOST_VERIFIED });

  async function verify(token: string): Promise<Actor> {
    const { payload, protectedHeader, key } = await jwtVerify(token, keys, {
      issuer,
      audience,
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      currentDate: clock.date(),
      requiredClaims: ['exp', subjectClaim],
    });
    const actor = actorOf(payload, subjectClaim);
    verified.set(token, { key, header: protectedHeader, payload, actor });
    return actor;
  }

  return async (authorization) => {
    const token = /^Bearer +([^\s]+)$/i.exec(authorization ?? '')?.[1];
    if (token === undefined) throw new ManagementProblem('missing_token');
    if (token.length > LONGEST_TOKEN) {
      throw new ManagementProblem('invalid_token', { detail: 'the token is too long' });
    }
    try {
      const known = verified.get(token);
      if (known !== undefined) {
        // After the keys are fetched again, even the same key is another object: then the signature is verified anew.
        const isSameKey = (await keys(known.header)) === known.key;
        if (isSameKey && isTimely(known.payload, clock.date().getTime())) return known.actor;
        verified.delete(token);
      }
      return await verify(token);
    } catch (cause) {
      throw problemFrom(cause);
    }
  };
}

/** Judges `exp` and `nbf` as `jwtVerify` does, which has checked that they are numbers where present. */
function isTimely({ exp = 0, nbf = 0 }: JWTPayload, nowMs: number): boolean {
  const now = Math.floor(nowMs / 1000);
  return exp > now - CLOCK_TOLERANCE_SECONDS && nbf <= now + CLOCK_TOLERANCE_SECONDS;
}

/** The person or program that a verified token's claims name. Throws `invalid_token`. */
export function actorOf(claims: JWTPayload, subjectClaim: string): Actor {
  const { [subjectClaim]: sub, name, email } = claims;
  if (typeof sub !== 'string' || sub === '') {
    throw new ManagementProblem('invalid_token', {
      detail: `the token’s claim ${subjectClaim} names no subject`,
    });
  }
  if (isTokenSubject(sub)) {
    throw new ManagementProblem('invalid_token', {
      detail: 'the token’s subject is that of a service token',
    });
  }
  // The members' schema refuses such subjects, and the database can't store some of them.
  if (/[\p{Cc}\p{Cs}]/u.test(sub)) {
    throw new ManagementProblem('invalid_token', {
      detail: 'the token’s subject is not plain Unicode text without control characters',
    });
  }
  const shown = typeof name === 'string' ? replaceHidden(name).trim() : '';
  return {
    subject: sub,
    name: shown === '' ? sub : shown,
    email:
      typeof email === 'string' && email.includes('@') ? replaceHidden(email).trim() : `${sub}@users.invalid`,
  };
}

/** A fault of the token is the caller's (401); keys that can't be fetched are not (503). */
function problemFrom(cause: unknown): ManagementProblem {
  if (cause instanceof ManagementProblem) return cause;
  if (cause instanceof errors.JWTExpired) return new ManagementProblem('expired_token', { cause });
  const isFetchFault = cause instanceof errors.JWKSTimeout || cause instanceof errors.JWKSInvalid;
  const isGeneric = cause instanceof errors.JOSEError && cause.code === errors.JOSEError.code;
  if (!(cause instanceof errors.JOSEError) || isFetchFault || isGeneric) {
    return new ManagementProblem('auth_unavailable', { cause });
  }
  return new ManagementProblem('invalid_token', { cause });
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
