import { cookieDomain } from './cookie-domain.ts';
import { cookieValue } from './cookies.ts';
import { type Exchange, readBody, sendAnswer } from './exchange.ts';
import { loadCrypto } from './node/modules.ts';
import type { TagPolicy } from './policy/policy.ts';
import type { Recorder } from './recorder.ts';

/** The paths of a GA4 client in the container. */
export const COLLECT_PATHS: ReadonlySet<string> = new Set(['/g/collect', '/j/collect', '/mp/collect']);

/** The container's owner added Tag Manager clients, which claim all paths below these: for webhooks, apps and a CRM. */
const CLAIMED_PREFIXES = ['/webhooks/', '/apps/', '/crm/'] as const;

/** True if a client of the container's owner claims the path. */
export function isClaimed(path: string): boolean {
  return CLAIMED_PREFIXES.some((prefix) => path.startsWith(prefix));
}

/** Records a request that a client of the container's owner claims. */
export async function claim(exchange: Exchange, recorder: Recorder): Promise<void> {
  if ((await recordRequest(exchange, recorder)) !== null)
    sendAnswer(exchange, 200, { headers: corsHeaders(exchange) });
}

/** What the templates of the container use. */
export interface CollectDeps {
  readonly policy: TagPolicy;
  /** Is called with each line that they log. */
  readonly print: (line: string) => void;
}

const TWO_YEARS = 63_072_000;
const TWENTY_HOURS = 72_000;

/**
 * Records the hit and sets the cookies of a "Server Managed" GA4 client, by default with `domain: auto`: FPID, and FPLC
 * for cross-domain links. A cookie that the policy refuses isn't set, and a line of the log says so.
 */
export async function collect(
  exchange: Exchange,
  recorder: Recorder,
  { policy, print }: CollectDeps,
): Promise<void> {
  const body = await recordRequest(exchange, recorder);
  if (body === null) return;
  print(logLine(exchange, body));
  const { request } = exchange;
  const { createHash, randomBytes } = loadCrypto();
  const id = cookieValue(request, 'FPID') ?? `FPID2.2.${randomBytes(32).toString('base64url')}`;
  const link = createHash('sha256').update(id).digest('base64url');
  const domain = cookieDomain(request);
  const where = `${domain === null ? '' : `Domain=${domain}; `}Path=/; Secure`;
  const cookies = [
    ['FPID', `FPID=${id}; Max-Age=${TWO_YEARS}; ${where}; HttpOnly; SameSite=Lax`],
    ['FPLC', `FPLC=${link}; Max-Age=${TWENTY_HOURS}; ${where}; SameSite=Lax`],
  ] as const;
  const permitted = cookies.flatMap(([name, cookie]) => {
    const refusal = policy.refusal('set_cookies', { name, domain: domain ?? 'auto', path: '/' });
    if (refusal === null) return [cookie];
    console.error(`Template refused: GA4 client, set_cookies ${name}: ${refusal}`);
    return [];
  });
  sendAnswer(exchange, 200, {
    headers: {
      'cache-control': 'no-cache, no-store, must-revalidate',
      ...corsHeaders(exchange),
      ...(permitted.length === 0 ? {} : { 'set-cookie': permitted }),
    },
  });
}

/** The answer to a preflight. The real server answers preflights only on paths that a client claims. */
export function collectPreflight(exchange: Exchange): void {
  const requested = exchange.request.headers['access-control-request-headers'];
  sendAnswer(exchange, 200, {
    headers: {
      ...corsHeaders(exchange),
      'access-control-allow-methods': 'GET, POST',
      'access-control-max-age': '600',
      ...(requested === undefined ? {} : { 'access-control-allow-headers': requested }),
    },
  });
}

/** Records the request and returns its body; `null` if that was too large, and `readBody` has answered 413. */
export async function recordRequest(exchange: Exchange, recorder: Recorder): Promise<string | null> {
  const { request, method, path, query } = exchange;
  const body = await readBody(exchange);
  if (body === null) return null;
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
  return body;
}

/**
 * The whole hit as a line of the log, in the form of the community's templates ("GTMS-3, Server Templates Logging").
 */
function logLine({ request, method, path, query }: Exchange, body: string): string {
  const names = [query, ...body.split('\n')].flatMap((line) => new URLSearchParams(line).get('en') ?? []);
  const hit = {
    Name: 'GA4 client',
    Type: 'Request',
    TraceId: request.headers['trace-id'],
    EventName: names[0],
    RequestMethod: method,
    RequestUrl: query === '' ? path : `${path}?${query}`,
    RequestBody: body,
  };
  return JSON.stringify(hit);
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
