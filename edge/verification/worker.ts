import * as z from 'zod/mini';
import { signer } from '../base/signing.ts';
import { verify } from './checks/verify.ts';
import { verificationRequest } from './contract.ts';
import { refusal } from './errors.ts';

interface Env {
  /** Requests must send it in the header `x-secret`. If it is unset or empty, every request is refused. */
  readonly VERIFICATION_SECRET?: string;
  /** The edge's secret: with it, visits are marked as probes. Unset: they count as traffic of the site. */
  readonly HOP_SECRET?: string;
  /** `true` once `npm run conform -- --google` has shown that Google's gtm.js depends on the place that the edge sends. */
  readonly SCRIPTS_BY_PLACE?: string;
}

/** The request for a site with twenty domains and a host report is far smaller. */
const MAX_OCTETS = 256 * 1024;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** Answers `POST /verify` for management and `tagyard doctor`. */
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    const given = request.headers.get('x-request-id') ?? '';
    const requestId = REQUEST_ID.test(given) ? given : crypto.randomUUID();
    if (!env.VERIFICATION_SECRET) return refusal('secret_not_configured', requestId);
    if (!(await isSecret(request.headers.get('x-secret'), env.VERIFICATION_SECRET))) {
      return refusal('wrong_secret', requestId);
    }
    if (pathname !== '/verify') return refusal('not_found', requestId);
    if (request.method !== 'POST') return refusal('method_not_allowed', requestId);
    const length = request.headers.get('content-length');
    if (length === null || Number(length) > MAX_OCTETS) return refusal('body_too_large', requestId);
    const parsed = z.safeParse(verificationRequest, await request.json().catch(() => null));
    if (!parsed.success) return refusal('malformed_request', requestId, z.prettifyError(parsed.error));
    const report = await verify(parsed.data, {
      fetch: (input, init) => fetch(input, init),
      now: Date.now,
      scriptsByPlace: env.SCRIPTS_BY_PLACE === 'true',
      sign: env.HOP_SECRET ? signer(env.HOP_SECRET) : undefined,
    });
    return Response.json(report, { headers: { 'cache-control': 'no-store', 'x-request-id': requestId } });
  },
} satisfies ExportedHandler<Env>;

/** Compares digests of equal length, so that timing reveals neither content nor length of the secret. */
async function isSecret(given: string | null, secret: string): Promise<boolean> {
  if (given === null) return false;
  const digest = (text: string) => crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  const [a, b] = await Promise.all([digest(given), digest(secret)]);
  return crypto.subtle.timingSafeEqual(a, b);
}
