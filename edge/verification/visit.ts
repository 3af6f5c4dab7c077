import type { SiteDescription } from './contract.ts';

/** What a visit came to; `status: null` where nobody answered, and `problem` says why. */
export interface Visit {
  readonly status: number | null;
  readonly headers: Headers;
  /** The first of the body, as text. */
  readonly text: string;
  readonly problem: string | null;
}

export interface VisitOptions {
  readonly method?: 'GET' | 'POST' | 'OPTIONS';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

/** `url` is absolute. Never rejects; asking the same again gives the same answer without a second request. */
export type SiteVisits = (url: URL, options?: VisitOptions) => Promise<Visit>;

/** A script's head is enough to know it by; nothing that is sent may fill the memory. */
const MOST_CHARS = 64 * 1024;

/**
 * Visits a site, and nothing but the site: an address that isn't at one of its own hosts and ports is refused before
 * anything is sent, as is one that is a bare address, and redirects are answers, not ways to go.
 */
export function siteVisitor(
  site: SiteDescription,
  { fetch, signal }: { readonly fetch: typeof globalThis.fetch; readonly signal: AbortSignal },
): SiteVisits {
  const own = new Set([site.edge, site.origin, site.preview, ...site.customDomains].map(originOf));
  const known = new Map<string, Promise<Visit>>();

  async function visit(url: URL, { method = 'GET', headers = {}, body }: VisitOptions): Promise<Visit> {
    if (!own.has(url.origin) || !isName(url.hostname)) {
      return nobody(`${url.origin} is none of the site’s own hosts`);
    }
    try {
      const response = await fetch(url, {
        method,
        redirect: 'manual',
        signal,
        headers: {
          'user-agent': 'Tagyard-Verification',
          'cache-control': 'no-cache',
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
      if (signal.aborted) return nobody('no answer in time');
      return nobody(error instanceof Error ? error.message : String(error));
    }
  }

  return (url, options = {}) => {
    const key = JSON.stringify([url.href, options]);
    const visited = known.get(key) ?? visit(url, options);
    known.set(key, visited);
    return visited;
  };
}

/** What stands in a detail for an answer that wasn't the right one. Never its body: that is the other side's word. */
export function described({ status, problem }: Visit): string {
  return status === null ? `nobody answered (${problem})` : `status ${status}`;
}

/** The edge's and management's own words are problems (RFC 9457); the tag server has none. */
export function isProblem({ headers }: Visit): boolean {
  return /^application\/problem\+json\b/.test(headers.get('content-type') ?? '');
}

function originOf(url: string): string {
  return new URL(url).origin;
}

/** Two labels or more, and the last one no number: never an IPv4 or IPv6 address, nor a name of this machine. */
function isName(host: string): boolean {
  return /^(?:[a-z0-9_-]+\.)+[a-z][a-z0-9-]*$/i.test(host);
}

function nobody(problem: string): Visit {
  return { status: null, headers: new Headers(), text: '', problem };
}

async function beginning({ body }: Response): Promise<string> {
  if (body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    // Leaving the loop ends the stream.
    if (text.length >= MOST_CHARS) break;
  }
  return text;
}
