import { type CheckContext, type ForwardedDomain, forwardedDomains } from '../check.ts';
import { type Finding, failed, passed, skipped } from '../result.ts';
import { described, isProblem, type Visit } from '../visit.ts';
import { findPages } from './pages.ts';

/** The result for one property of a prefix: a fault, a proof, or (`open`) the reason why there is neither. */
type Outcome =
  | { readonly detail: string; readonly fix: string }
  | { readonly proven: string; readonly advice?: string }
  | { readonly open: string };
type Aspect = (context: CheckContext, prefix: Prefix) => Promise<Outcome>;

interface Prefix extends ForwardedDomain {
  /** `https://www.acme.example/m3trics1` */
  readonly base: string;
}

const SNIPPET_ADVICE =
  'Install the newest snippet for the domain’s server (from tagyard snippet, or the domain in the API).';
const CACHE_ADVICE = 'Exclude the prefix from every cache of the domain’s server or CDN.';
const PLACE_ADVICE =
  'If the domain’s server knows the visitor’s place (a database, or its CDN), set x-tagyard-country and x-tagyard-region from that. Until then the strictest rules of consent hold below the prefix, and tags get no place.';

/** Addresses for documentation (RFC 5737), by the header in which a visitor claims them. */
const CLAIMED_ADDRESSES = {
  'x-tagyard-visitor': '192.0.2.1',
  'x-forwarded-for': '192.0.2.2',
  'x-real-ip': '192.0.2.3',
  'true-client-ip': '192.0.2.4',
};
/** Antarctica, and a region that no country has. */
const CLAIMED_PLACE = { 'x-tagyard-country': 'AQ', 'x-tagyard-region': 'QZ' };
/** Addresses of private networks: they belong to a server in between, never to a visitor. */
const PRIVATE = /^(?:10\.|127\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|::1$|f[cd])/i;

const ASPECTS: readonly Aspect[] = [tryLoader, tryHits, tryCache, tryCookies, tryAddress, tryPlace];

/**
 * Sends requests to the prefix on the pages' own host, as a browser does. The first fault counts. Passes only where all is
 * proven.
 */
export async function checkSameOrigin(context: CheckContext) {
  return await Promise.all(
    forwardedDomains(context.site).map(async (forwarded): Promise<Finding> => {
      const { domain, path } = forwarded;
      const { origin } = await findPages(context, forwarded);
      const prefix = { ...forwarded, base: origin + path };
      const proven: string[] = [];
      const open: string[] = [];
      let advice: string | undefined;
      for (const aspect of ASPECTS) {
        const outcome = await aspect(context, prefix);
        if ('fix' in outcome) return failed(domain, outcome.detail, outcome.fix);
        if ('open' in outcome) open.push(outcome.open);
        else proven.push(outcome.proven);
        if ('advice' in outcome) ({ advice } = outcome);
      }
      const detail = `${prefix.base} leads to the edge: ${proven.join(', ')}`;
      if (open.length > 0) return skipped(domain, `${detail}; not proven: ${open.join('; ')}`);
      return passed(domain, detail, advice);
    }),
  );
}

/** The loader names the prefix only if the edge knows the forwarder's token. */
async function tryLoader({ site, visit }: CheckContext, { base }: Prefix): Promise<Outcome> {
  const answer = await visit(new URL(`${base}/l/${site.loaderToken}.js`));
  const isScript = /\bjavascript\b/.test(answer.headers.get('content-type') ?? '');
  if (answer.status !== 200 || !isScript) {
    return { detail: `${base} doesn’t lead to the edge: ${described(answer)}`, fix: SNIPPET_ADVICE };
  }
  if (answer.text.includes(JSON.stringify(base))) return { proven: 'it knows the server by its token' };
  return {
    detail: `${base} leads to the edge, which doesn’t accept its server: the token or the host is wrong`,
    fix: SNIPPET_ADVICE,
  };
}

/**
 * Most tags send their hits by POST. This one has no query and no body, so that no client in the container takes it for
 * a hit.
 */
async function tryHits({ visit }: CheckContext, { base }: Prefix): Promise<Outcome> {
  const address = `${base}/g/collect`;
  const answer = await visit(new URL(address), { method: 'POST' });
  const { status, headers } = answer;
  if (status === null || status >= 500) return { open: `that hits arrive (${described(answer)})` };
  if (status >= 300 && status < 400) {
    const { target, fix } = redirectOf(new URL(address), headers.get('location') ?? '');
    return { detail: `a hit to ${address} is redirected (${status})${target}`, fix };
  }
  if (headers.has('x-tagyard-request-id') && !isProblem(answer)) return { proven: 'hits arrive' };
  return {
    detail: `a hit to ${address} doesn’t reach the edge: ${described(answer)}`,
    fix: `Let the domain’s server forward every method below the path, POST too. ${SNIPPET_ADVICE}`,
  };
}

/** Where a redirect leads, as far as that tells who makes it, and what to change. */
function redirectOf(asked: URL, location: string): { readonly target: string; readonly fix: string } {
  const to = URL.parse(location, asked.href);
  if (to !== null && to.host !== asked.host) {
    return {
      target: ` to the host ${to.host}`,
      fix: `The domain’s server redirects to ${to.host}: exempt the path from that, or have the pages and their snippet on that host only.`,
    };
  }
  if (to?.pathname === `${asked.pathname}/`) {
    return {
      target: ' to the same address with a slash',
      fix: 'The pages’ framework adds slashes. In Next.js it is the setting trailingSlash: set skipTrailingSlashRedirect: true in next.config.js, too. In others, exempt the path from the setting that adds slashes.',
    };
  }
  return {
    target: '',
    fix: 'Exempt the path from the redirects of the domain’s server: a browser may drop the hit.',
  };
}

/** The check `cookies_forwarded` under a prefix: the tag server answers 401 to a preview cookie without its auth. */
async function tryCookies({ host, visit }: CheckContext, { base }: Prefix): Promise<Outcome> {
  const id = host?.config.id ?? null;
  if (id === null) return { open: 'cookies (only the host knows the container’s id, which this needs)' };
  const url = new URL(`${base}/_/tagyard-verification`);
  const [plain, probed] = await Promise.all([
    visit(url),
    visit(url, { headers: { cookie: `gtm_preview=${id}=env-tagyard` } }),
  ]);
  if (plain.status === null || plain.status >= 500) {
    return { open: `cookies (the tag server doesn’t answer: ${described(plain)})` };
  }
  if (plain.status !== 401 && probed.status === 401) return { proven: 'cookies arrive' };
  return {
    detail: `cookies don’t arrive by ${base}: ${described(probed)} with a preview cookie, ${described(plain)} without`,
    fix: SNIPPET_ADVICE,
  };
}

/** Neither an address that a visitor claims nor that of a server in between may arrive. */
async function tryAddress(context: CheckContext, prefix: Prefix): Promise<Outcome> {
  const { base, domain } = prefix;
  const { direct, forwarded } = await arrivals(context, base);
  if (forwarded.status !== 200 || isProblem(forwarded)) {
    return { open: `the visitor’s address (${described(forwarded)})` };
  }
  const { own, arrived } = addressesOf({ direct, forwarded });
  if (arrived !== '' && arrived === own) return { proven: 'with the visitor’s address and no claimed one' };
  const claim = Object.entries(CLAIMED_ADDRESSES).find(([, address]) => address === arrived);
  if (claim !== undefined) {
    return {
      detail: `a visitor of ${base} can claim any address: the server takes it from ${claim[0]}`,
      fix: `Take the visitor’s address from the connection, or from a header that the server’s own proxy sets. ${SNIPPET_ADVICE}`,
    };
  }
  const { names = [] } = context.host ?? {};
  const servers = names.find(({ kind, name }) => kind === 'page' && name === domain)?.addresses ?? [];
  if (arrived !== '' && !servers.includes(arrived) && !PRIVATE.test(arrived)) {
    return {
      open: `the visitor’s address (a visit arrives from ${arrived}, on the edge hostname from ${own || 'none'})`,
    };
  }
  return {
    detail: `a visitor of ${base} arrives as ${arrived || 'no address'}, which isn’t the visitor’s`,
    fix: `Set x-tagyard-visitor to the visitor’s address, not that of a proxy or CDN before the server (in the snippet for Next.js: VISITOR_HEADER). ${SNIPPET_ADVICE}`,
  };
}

/** How a visit arrives on the edge hostname and, with claimed addresses, by the prefix. */
async function arrivals({ site, visit }: CheckContext, base: string) {
  const [direct, forwarded] = await Promise.all([
    visit(new URL('/_/tagyard/arrival', site.edge)),
    visit(new URL(`${base}/_/tagyard/arrival`), { headers: CLAIMED_ADDRESSES }),
  ]);
  return { direct, forwarded };
}

function addressesOf({ direct, forwarded }: Awaited<ReturnType<typeof arrivals>>) {
  const own = direct.status === 200 && !isProblem(direct) ? direct.text.trim() : '';
  return { own, arrived: forwarded.text.trim().slice(0, 64) };
}

/** The etag of a loader ends with the visitor's place, if the edge knows one. */
async function tryPlace(context: CheckContext, { base }: Prefix): Promise<Outcome> {
  const { site, visit } = context;
  const path = `/l/${site.loaderToken}.js`;
  const [direct, forwarded] = await Promise.all([
    visit(new URL(path, site.edge)),
    visit(new URL(base + path), { headers: CLAIMED_PLACE }),
  ]);
  if (forwarded.status !== 200) return { open: `the visitor’s country (${described(forwarded)})` };
  const [known] = placeOf(direct);
  const [stated, region] = placeOf(forwarded);
  if (stated === CLAIMED_PLACE['x-tagyard-country'] || region === CLAIMED_PLACE['x-tagyard-region']) {
    return {
      detail: `a visitor of ${base} can claim any country or region: the server passes it on`,
      fix: SNIPPET_ADVICE,
    };
  }
  if (stated === undefined)
    return { proven: 'with no country, as the server states none', advice: PLACE_ADVICE };
  if (known === undefined) {
    return { open: `the visitor’s country (it arrives as ${stated}; on the edge hostname it is unknown)` };
  }
  if (stated === known) return { proven: `with the visitor’s country (${stated})` };
  const { own, arrived } = addressesOf(await arrivals(context, base));
  // Two addresses of one visitor may be in two countries, as far as databases know.
  if (own === '' || own !== arrived) {
    return { open: `the visitor’s country (it arrives as ${stated}, on the edge hostname as ${known})` };
  }
  return {
    detail: `a visitor of ${base} arrives from ${stated}, and on the edge hostname from ${known}`,
    fix: `Set x-tagyard-country and x-tagyard-region to the visitor’s place, or remove them. ${SNIPPET_ADVICE}`,
  };
}

/** Country and region. */
const placeOf = ({ headers }: Visit) =>
  /-([A-Z]{2})(?:-([A-Z0-9]{1,3}))?"$/.exec(headers.get('etag') ?? '')?.slice(1) ?? [];

/** Each answer has its request's own id. A cache repeats the first one. */
async function tryCache({ visit }: CheckContext, { base }: Prefix): Promise<Outcome> {
  for (const path of ['/healthy', '/bait/gtm.js?v=1&ad_type=banner']) {
    const url = new URL(base + path);
    const first = await visit(url, { headers: { 'x-request-id': 'tagyard-verification-1' } });
    const second = await visit(url, { headers: { 'x-request-id': 'tagyard-verification-2' } });
    const [one = null, other = null] = [first, second].map(({ headers }) => headers.get('x-request-id'));
    const isRepeated = one !== null && one === other;
    if (isRepeated || Number(second.headers.get('age') ?? 0) > 0) {
      return { detail: `a cache answers ${base}${path} in place of the edge`, fix: CACHE_ADVICE };
    }
    if (one === null || other === null) {
      return { open: `that no cache answers (${described(second)}, without a request’s id)` };
    }
  }
  return { proven: 'uncached' };
}
