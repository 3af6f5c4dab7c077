import { createHash, randomBytes } from 'node:crypto';
import { cookieValue } from './cookies.ts';
import { type Exchange, readBody, sendAnswer } from './exchange.ts';
import type { Recorder } from './recorder.ts';

/** What a GA4 client in the container claims. */
export const COLLECT_PATHS: ReadonlySet<string> = new Set(['/g/collect', '/j/collect', '/mp/collect']);

const TWO_YEARS = 63_072_000;
const TWENTY_HOURS = 72_000;

/** Records the hit and sets the first-party id as a "Server Managed" GA4 client does: FPID for itself, FPLC for links. */
export async function collect(exchange: Exchange, recorder: Recorder): Promise<void> {
  if (!(await recordRequest(exchange, recorder))) return;
  const { request } = exchange;
  const id = cookieValue(request, 'FPID') ?? `FPID2.2.${randomBytes(32).toString('base64url')}`;
  const link = createHash('sha256').update(id).digest('base64url');
  sendAnswer(exchange, 200, 'text/plain', '', {
    'cache-control': 'no-cache, no-store, must-revalidate',
    ...corsHeaders(exchange),
    'set-cookie': [
      `FPID=${id}; Max-Age=${TWO_YEARS}; Path=/; Secure; HttpOnly; SameSite=Lax`,
      `FPLC=${link}; Max-Age=${TWENTY_HOURS}; Path=/; Secure; SameSite=Lax`,
    ],
  });
}

/** The server answers preflight on the paths that a client claims, and on no other. */
export function collectPreflight(exchange: Exchange): void {
  const asked = exchange.request.headers['access-control-request-headers'];
  sendAnswer(exchange, 200, 'text/plain', '', {
    ...corsHeaders(exchange),
    'access-control-allow-methods': 'GET, POST',
    'access-control-max-age': '600',
    ...(asked === undefined ? {} : { 'access-control-allow-headers': asked }),
  });
}

/** Keeps the request; false where it was refused for its size. */
export async function recordRequest(exchange: Exchange, recorder: Recorder): Promise<boolean> {
  const { request, method, path, query } = exchange;
  const body = await readBody(exchange);
  if (body === null) return false;
  const pairs = request.rawHeaders;
  const forwarded = request.headers['x-forwarded-for'];
  const [first] = String(forwarded ?? '').split(',');
  recorder.record({
    at: new Date().toISOString(),
    method,
    path,
    query,
    headers: Array.from({ length: pairs.length / 2 }, (_, index) => [
      pairs[2 * index] ?? '',
      pairs[2 * index + 1] ?? '',
    ]),
    body,
    address: first?.trim() || (request.socket.remoteAddress ?? null),
  });
  return true;
}

function corsHeaders({ request }: Exchange): Record<string, string> {
  const { origin } = request.headers;
  if (origin === undefined) return {};
  return {
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    vary: 'Origin',
  };
}
