import type { FastifyRequest } from 'fastify';
import { equalSecrets } from '../../base/http/equal-secrets.ts';
import { ProvisionerProblem } from './errors.ts';

/**
 * The secrets that requests may use. The previous one counts only beside a current one: without `INFRA_SECRET`, every
 * request is refused.
 */
export function acceptedSecrets(current: string | undefined, previous: string | undefined): string[] {
  if (!current) return [];
  return previous ? [current, previous] : [current];
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The provisioner's read-only token is enough for the route. */
    reads?: true;
  }
}

interface Access {
  /** As in `acceptedSecrets`. */
  readonly secrets: readonly string[];
  /** Also counts only beside a secret, and only for routes with `reads`. */
  readonly readToken?: string | undefined;
}

/**
 * Throws `secret_not_configured` or `wrong_secret` unless the request has one of the secrets, or `read_only` if it has the
 * read-only token and wants more. `GET /healthz` needs none.
 */
export function authenticate(
  { headers, method, url, routeOptions }: FastifyRequest,
  { secrets, readToken }: Access,
): void {
  if ((method === 'GET' || method === 'HEAD') && url.split('?', 1)[0] === '/healthz') return;
  if (secrets.length === 0) throw new ProvisionerProblem('secret_not_configured');
  const given = headers['x-secret'];
  if (typeof given === 'string' && secrets.some((secret) => equalSecrets(secret, given))) return;
  // Prometheus sends a bearer token.
  const token = given ?? /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  if (!readToken || typeof token !== 'string' || !equalSecrets(readToken, token)) {
    throw new ProvisionerProblem('wrong_secret');
  }
  if (routeOptions.config?.reads !== true) throw new ProvisionerProblem('read_only');
}

/** The options of a route for which the read-only token is enough. */
export const FOR_READERS = { config: { reads: true } } as const;
