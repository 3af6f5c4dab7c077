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

/**
 * Throws `secret_not_configured` or `wrong_secret` unless the request has one of the secrets. `GET /healthz` needs
 * none.
 */
export function authenticate({ headers, method, url }: FastifyRequest, secrets: readonly string[]): void {
  if ((method === 'GET' || method === 'HEAD') && url.split('?', 1)[0] === '/healthz') return;
  if (secrets.length === 0) throw new ProvisionerProblem('secret_not_configured');
  const given = headers['x-secret'];
  if (typeof given !== 'string' || !secrets.some((secret) => equalSecrets(secret, given))) {
    throw new ProvisionerProblem('wrong_secret');
  }
}
