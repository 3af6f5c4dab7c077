/**
 * What a page's Content-Security-Policy must allow so that one address's tags run, and what of this a policy refuses.
 * Sources: W3C Content Security Policy Level 3, 6.7; developers.google.com/tag-platform/security/guides/csp.
 */

/** The vendor's host: for what its script loads, and for the snippet's direct fallback (docs/block-lists.md). */
const VENDOR = 'https://www.googletagmanager.com';

/** For each directive, a request that tags make below the address, and one that they make to the vendor. */
const REQUESTS = {
  'script-src': ['/l/loader.js', '/gtm.js'],
  'connect-src': ['/boot', '/td'],
  'img-src': ['/g/collect', '/a'],
  // The pages that start the service workers of GA4 (below the address) and of ads products (at the vendor).
  'frame-src': ['/_/service_worker/sw_iframe.html', '/static/service_worker/sw_iframe.html'],
} as const;
type Directive = keyof typeof REQUESTS;
const DIRECTIVES = Object.keys(REQUESTS) as Directive[]; // Object.keys forgets the key type

/** For each directive, those that can govern its requests: the first of these that is in the policy decides. */
const FALLBACKS: Readonly<Record<Directive, readonly string[]>> = {
  'script-src': ['script-src-elem', 'script-src', 'default-src'],
  'connect-src': ['connect-src', 'default-src'],
  'img-src': ['img-src', 'default-src'],
  'frame-src': ['frame-src', 'child-src', 'default-src'],
};

/** The sources that each directive needs. A base has no slash at its end: it is an origin, or a prefix below one. */
function neededSources(
  bases: readonly string[],
  vendor: string,
): Readonly<Record<Directive, readonly string[]>> {
  const own = bases.map((base) => (new URL(base).pathname === '/' ? base : `${base}/`));
  const sources = [...own, vendor];
  return { 'script-src': sources, 'connect-src': sources, 'img-src': sources, 'frame-src': sources };
}

/**
 * The sources as text: `script-src …; connect-src …`. If there are several addresses, each page uses one of them. The
 * host of a base may begin with `*.`, for a prefix below every host of a domain.
 */
export function neededPolicy(base: string | readonly string[], vendor = VENDOR): string {
  return Object.entries(neededSources([base].flat(), vendor))
    .map(([directive, sources]) => `${directive} ${sources.join(' ')}`)
    .join('; ');
}

/**
 * The needed sources that the page's policies refuse: `script-src https://…`. `policies` are the values of its headers
 * and `meta` elements; a resource must be allowed by all of them. A nonce counts as allowed: the snippet passes it on.
 */
export function missingSources(policies: readonly string[], base: string, page: URL): string[] {
  const parsed = policies.flatMap((header) => header.split(',')).map(parsePolicy);
  const needed = neededSources([base], VENDOR);
  return DIRECTIVES.flatMap((directive) => {
    const [own, vendors] = REQUESTS[directive];
    return [base + own, VENDOR + vendors].flatMap((url, index) => {
      const refused = parsed.some((policy) => !allows(policy, directive, { url: new URL(url), page }));
      return refused ? [`${directive} ${needed[directive][index]}`] : [];
    });
  });
}

type Policy = ReadonlyMap<string, readonly string[]>;

interface Resource {
  readonly url: URL;
  readonly page: URL;
}

/** If a directive is given several times, the first one counts. */
function parsePolicy(text: string): Policy {
  const policy = new Map<string, readonly string[]>();
  for (const part of text.split(';')) {
    const [name = '', ...sources] = part.trim().split(/\s+/);
    if (!policy.has(name.toLowerCase())) policy.set(name.toLowerCase(), sources);
  }
  return policy;
}

function allows(policy: Policy, directive: Directive, resource: Resource): boolean {
  const name = FALLBACKS[directive].find((each) => policy.has(each));
  const sources = name === undefined ? undefined : policy.get(name);
  if (sources === undefined) return true;
  if (directive === 'script-src' && sources.some((source) => /^'nonce-/i.test(source))) return true;
  // 'strict-dynamic' disables all sources by host, and trusts the scripts that an allowed script adds.
  if (directive === 'script-src' && sources.some((source) => /^'strict-dynamic'$/i.test(source))) {
    return sources.some((source) => /^'sha\d+-/i.test(source));
  }
  return sources.some((source) => matches(source, resource));
}

const HOST_SOURCE = /^(?:([a-z][a-z0-9+.-]*):\/\/)?(\*|(?:\*\.)?[a-z0-9.-]+)(?::(\d+|\*))?(\/[^?#]*)?$/i;

function matches(source: string, { url, page }: Resource): boolean {
  if (source === '*') return true;
  if (/^'self'$/i.test(source)) return url.origin === page.origin;
  const scheme = /^([a-z][a-z0-9+.-]*):$/i.exec(source)?.[1];
  if (scheme !== undefined) return isScheme(scheme, url);
  const [, given, host = '', port, path] = HOST_SOURCE.exec(source) ?? [];
  if (host === '' || !isScheme(given ?? page.protocol.slice(0, -1), url)) return false;
  return isHost(host.toLowerCase(), url) && isPort(port, url) && isPath(path, url);
}

/** A source for http also allows https. */
const isScheme = (scheme: string, { protocol }: URL) =>
  protocol === `${scheme.toLowerCase()}:` || (scheme.toLowerCase() === 'http' && protocol === 'https:');

const isHost = (host: string, { hostname }: URL) =>
  host === '*' || (host.startsWith('*.') ? hostname.endsWith(host.slice(1)) : hostname === host);

/** Whether a source's port allows the URL's. A source without a port allows the default port of the URL's scheme. */
const isPort = (port: string | undefined, url: URL) =>
  port === '*' || (port === undefined ? url.port === '' : port === (url.port || defaultPort(url)));

const defaultPort = ({ protocol }: URL) => (protocol === 'http:' ? '80' : '443');

/** A path that ends with a slash allows all below it. */
const isPath = (path: string | undefined, { pathname }: URL) =>
  path === undefined || path === '/' || (path.endsWith('/') ? pathname.startsWith(path) : pathname === path);
