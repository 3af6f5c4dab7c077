import type { SiteDescription } from './contract.ts';

/** The result of a visit. `status: null`: no answer came, for the reason in `problem`. */
export interface Visit {
  readonly status: number | null;
  readonly headers: Headers;
  /** The beginning of the body. */
  readonly text: string;
  readonly problem: string | null;
}

interface VisitOptions {
  readonly method?: 'GET' | 'POST' | 'OPTIONS';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

/** Visits an absolute URL. Never rejects. Repeated calls with the same arguments send one request. */
export type SiteVisits = (url: URL, options?: VisitOptions) => Promise<Visit>;

/** Enough for the data of a web container, which its script begins with. Limits the memory that an answer can fill. */
const MAX_CHARS = 256 * 1024;

/** True for the site's own hosts, which Tagyard serves. */
export function isOwnHost(site: SiteDescription, { origin }: URL): boolean {
  return [site.edge, site.origin, site.preview, ...site.customDomains].some(
    (url) => originOf(url) === origin,
  );
}

/**
 * True for the pages' hosts, by https: a domain and the hosts under it. Unless their own server forwards a prefix, only
 * their first pages are visited.
 */
function isPage({ domains }: SiteDescription, { protocol, hostname, port, pathname }: URL): boolean {
  return domains.some(
    ({ domain, sameOrigin }) =>
      (sameOrigin !== undefined || pathname === '/') &&
      protocol === 'https:' &&
      port === '' &&
      (hostname === domain || hostname.endsWith(`.${domain}`)),
  );
}

interface VisitorDependencies {
  readonly fetch: typeof globalThis.fetch;
  readonly signal: AbortSignal;
  /** The headers that mark a request as no visitor's. Without them, the edge counts it as traffic. */
  readonly mark?: ((method: string, path: string) => Promise<Record<string, string>>) | undefined;
}

/**
 * Visits the hosts of a site, the first pages of its domains and, for a domain with a prefix, all its addresses. Any
 * other URL, also one with another port or with an IP address, is refused before anything is sent.
 * Redirects are not followed.
 */
export function siteVisitor(site: SiteDescription, { fetch, signal, mark }: VisitorDependencies): SiteVisits {
  const known = new Map<string, Promise<Visit>>();

  async function visit(url: URL, { method = 'GET', headers = {}, body }: VisitOptions): Promise<Visit> {
    if (!(isOwnHost(site, url) || isPage(site, url)) || !isName(url.hostname)) {
      return unanswered(`${url.origin} is not one of the site’s own hosts`);
    }
    try {
      const response = await fetch(url, {
        method,
        redirect: 'manual',
        signal,
        headers: {
          'user-agent': 'Tagyard-Verification',
          'cache-control': 'no-cache',
          ...(await mark?.(method, url.pathname)),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return {
        status: response.status,
        headers: response.headers,
        text: await beginning(response),
        problem: null,
      };
    } catch (error) {
      if (signal.aborted) return unanswered('no answer in time');
      return unanswered(error instanceof Error ? error.message : String(error));
    }
  }

  return (url, options = {}) => {
    const key = JSON.stringify([url.href, options]);
    const visited = known.get(key) ?? visit(url, options);
    known.set(key, visited);
    return visited;
  };
}

/** Describes an unexpected answer for a detail. Omits the body, because the other side controls it. */
export function described({ status, problem }: Visit): string {
  return status === null ? `no answer (${problem})` : `status ${status}`;
}

/** The edge answers errors as problem+json (RFC 9457); the tag server never does. */
export function isProblem({ headers }: Visit): boolean {
  return /^application\/problem\+json\b/.test(headers.get('content-type') ?? '');
}

function originOf(url: string): string {
  return new URL(url).origin;
}

/** Two labels or more, the last one not a number: neither an IP address nor a local name. */
function isName(host: string): boolean {
  return /^(?:[a-z0-9_-]+\.)+[a-z][a-z0-9-]*$/i.test(host);
}

function unanswered(problem: string): Visit {
  return { status: null, headers: new Headers(), text: '', problem };
}

async function beginning({ body }: Response): Promise<string> {
  if (body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    // `break` cancels the stream.
    if (text.length >= MAX_CHARS) break;
  }
  return text;
}
