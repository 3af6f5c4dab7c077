import * as z from 'zod/mini';
import { verify } from './checks/verify.ts';
import { verificationRequest } from './contract.ts';
import { refusal } from './errors.ts';

interface Env {
  /** Who asks must bear it in `x-secret`; unset or empty: nobody may. */
  readonly VERIFICATION_SECRET?: string;
}

/** A site with twenty domains and its host's report are far below. */
const MOST_BYTES = 256 * 1024;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** `POST /verify` for management and `tagyard doctor`, and nothing else. */
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    const given = request.headers.get('x-request-id') ?? '';
    const requestId = REQUEST_ID.test(given) ? given : crypto.randomUUID();
    if (!env.VERIFICATION_SECRET) return refusal('secret_not_configured', requestId);
    if (!(await knows(request.headers.get('x-secret'), env.VERIFICATION_SECRET))) {
      return refusal('wrong_secret', requestId);
    }
    if (pathname !== '/verify') return refusal('not_found', requestId);
    if (request.method !== 'POST') return refusal('method_not_allowed', requestId);
    const length = request.headers.get('content-length');
    if (length === null || Number(length) > MOST_BYTES) return refusal('body_too_large', requestId);
    const asked = z.safeParse(verificationRequest, await request.json().catch(() => null));
    if (!asked.success) return refusal('malformed_request', requestId, z.prettifyError(asked.error));
    const report = await verify(asked.data, { fetch: (input, init) => fetch(input, init), now: Date.now });
    return Response.json(report, { headers: { 'cache-control': 'no-store', 'x-request-id': requestId } });
  },
} satisfies ExportedHandler<Env>;

/** Compared over digests of equal length, so that neither content nor length shows in the time it takes. */
async function knows(given: string | null, secret: string): Promise<boolean> {
  if (given === null) return false;
  const digest = (text: string) => crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  const [a, b] = await Promise.all([digest(given), digest(secret)]);
  return crypto.subtle.timingSafeEqual(a, b);
}
