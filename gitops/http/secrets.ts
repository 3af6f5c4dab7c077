import type { FastifyRequest } from 'fastify';
import { equalSecrets } from '../base/http/equal-secrets.ts';
import { ProvisionerProblem } from './errors.ts';

/** The previous secret is accepted beside a current one only: without `INFRA_SECRET` every request is refused. */
export function acceptedSecrets(current: string | undefined, previous: string | undefined): string[] {
  if (!current) return [];
  return previous ? [current, previous] : [current];
}

/** Throws unless the request has one of the secrets, or asks for `GET /healthz`, which needs none. */
export function authenticate({ headers, method, url }: FastifyRequest, secrets: readonly string[]): void {
  if ((method === 'GET' || method === 'HEAD') && url.split('?', 1)[0] === '/healthz') return;
  if (secrets.length === 0) throw new ProvisionerProblem('secret_not_configured');
  const given = headers['x-secret'];
  if (typeof given !== 'string' || !secrets.some((secret) => equalSecrets(secret, given))) {
    throw new ProvisionerProblem('wrong_secret');
  }
}
