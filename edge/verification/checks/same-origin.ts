import { type CheckContext, type ForwardedDomain, forwardedDomains } from '../check.ts';
import { type Finding, failed, passed } from '../result.ts';
import { described, isProblem } from '../visit.ts';
import { findPages } from './pages.ts';

/** A check of one property of a prefix: the fault, or `null`. */
type Fault = { readonly detail: string; readonly fix: string } | null;
type Aspect = (context: CheckContext, prefix: Prefix) => Promise<Fault>;

interface Prefix extends ForwardedDomain {
  /** `https://www.acme.example/m3trics1` */
  readonly base: string;
}

const SNIPPET_ADVICE =
  'Put the newest snippet for its server in place (tagyard snippet, or the domain in the API).';
const CACHE_ADVICE = 'Exclude the prefix from every cache of the domain’s server or CDN.';

/** An address for documentation (RFC 5737), which a visitor may claim. */
const CLAIMED_ADDRESS = '192.0.2.1';
/** Antarctica, which a visitor may claim. */
const CLAIMED_COUNTRY = 'AQ';
/** Addresses of private networks: a server between, never a visitor. */
const PRIVATE = /^(?:10\.|127\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|::1$|f[cd])/i;

/** Sends requests to the prefix on the pages' own host, as a browser does. The first fault counts. */
export async function checkSameOrigin(context: CheckContext) {
  return await Promise.all(
    forwardedDomains(context.site).map(async (forwarded): Promise<Finding> => {
      const { domain, path } = forwarded;
      const { origin } = await findPages(context, forwarded);
      const prefix = { ...forwarded, base: origin + path };
      for (const aspect of [
        loaderFault,
        cacheFault,
        cookieFault,
        addressFault,
        placeFault,
      ] satisfies Aspect[]) {
        const fault = await aspect(context, prefix);
        if (fault !== null) return failed(domain, fault.detail, fault.fix);
      }
      return passed(
        domain,
        `${prefix.base} leads to the edge, with cookies, the visitor’s address and no other country, uncached`,
      );
    }),
  );
}

/** The loader names the prefix only if the edge knows the forwarder's token. */
async function loaderFault({ site, visit }: CheckContext, { base }: Prefix): Promise<Fault> {
  const answer = await visit(new URL(`${base}/l/${site.loaderToken}.js`));
  const isScript = /\bjavascript\b/.test(answer.headers.get('content-type') ?? '');
  if (answer.status !== 200 || !isScript) {
    return { detail: `${base} doesn’t lead to the edge: ${described(answer)}`, fix: SNIPPET_ADVICE };
  }
  if (answer.text.includes(JSON.stringify(base))) return null;
  return {
    detail: `${base} leads to the edge, which doesn’t know its server: token or host are wrong`,
    fix: SNIPPET_ADVICE,
  };
}

/** As `cookies_forwarded`: the tag server answers 401 to a preview cookie without its auth. */
async function cookieFault({ host, visit }: CheckContext, { base }: Prefix): Promise<Fault> {
  const id = host?.config.id ?? null;
  if (id === null) return null;
  const url = new URL(`${base}/_/tagyard-verification`);
  const [plain, probed] = await Promise.all([
    visit(url),
    visit(url, { headers: { cookie: `gtm_preview=${id}=env-tagyard` } }),
  ]);
  const isSilent = plain.status === null || plain.status >= 500;
  if (isSilent || (plain.status !== 401 && probed.status === 401)) return null;
  return {
    detail: `cookies don’t arrive by ${base}: ${described(probed)} with a preview cookie, ${described(plain)} without`,
    fix: SNIPPET_ADVICE,
  };
}

/** A false address in the forwarder's own header must not arrive, nor the address of a server between. */
async function addressFault({ site, host, visit }: CheckContext, { base, domain }: Prefix): Promise<Fault> {
  const [direct, forwarded] = await Promise.all([
    visit(new URL('/_/tagyard/arrival', site.edge)),
    visit(new URL(`${base}/_/tagyard/arrival`), { headers: { 'x-tagyard-visitor': CLAIMED_ADDRESS } }),
  ]);
  if (forwarded.status !== 200 || isProblem(forwarded)) return null;
  const arrived = forwarded.text.trim().slice(0, 64);
  if (arrived !== '' && arrived === direct.text.trim()) return null;
  if (arrived === CLAIMED_ADDRESS) {
    return {
      detail: `a visitor of ${base} can claim any address: the server passes it on`,
      fix: SNIPPET_ADVICE,
    };
  }
  const servers = host?.names.find(({ kind, name }) => kind === 'page' && name === domain)?.addresses ?? [];
  if (arrived !== '' && !servers.includes(arrived) && !PRIVATE.test(arrived)) return null;
  return {
    detail: `a visitor of ${base} arrives as ${arrived || 'no address'}, which isn’t the visitor’s`,
    fix: `Set x-tagyard-visitor to the visitor’s address, not that of a proxy or CDN before the server. ${SNIPPET_ADVICE}`,
  };
}

/** The etag of a loader ends with the visitor's place, if the edge knows one. An unknown place is no fault. */
async function placeFault({ site, visit }: CheckContext, { base }: Prefix): Promise<Fault> {
  const path = `/l/${site.loaderToken}.js`;
  const [direct, forwarded] = await Promise.all([
    visit(new URL(path, site.edge)),
    visit(new URL(base + path), { headers: { 'x-tagyard-country': CLAIMED_COUNTRY } }),
  ]);
  const [known, stated] = [direct, forwarded].map(({ headers }) => countryOf(headers.get('etag')));
  if (stated === CLAIMED_COUNTRY) {
    return {
      detail: `a visitor of ${base} can claim any country: the server passes it on`,
      fix: SNIPPET_ADVICE,
    };
  }
  if (stated === undefined || known === undefined || stated === known) return null;
  return {
    detail: `a visitor of ${base} arrives from ${stated}, and from ${known} without it`,
    fix: `Set x-tagyard-country and x-tagyard-region to the visitor’s place, or remove them. ${SNIPPET_ADVICE}`,
  };
}

const countryOf = (etag: string | null) => /-([A-Z]{2})(?:-[A-Z0-9]{1,3})?"$/.exec(etag ?? '')?.[1];

/** Each answer has its request's own id. A cache repeats the first one. */
async function cacheFault({ visit }: CheckContext, { base }: Prefix): Promise<Fault> {
  for (const path of ['/healthy', '/bait/gtm.js?v=1&ad_type=banner']) {
    const url = new URL(base + path);
    const first = await visit(url, { headers: { 'x-request-id': 'tagyard-verification-1' } });
    const second = await visit(url, { headers: { 'x-request-id': 'tagyard-verification-2' } });
    const [one, other] = [first, second].map(({ headers }) => headers.get('x-request-id'));
    const isRepeated = one !== null && one === other;
    if (isRepeated || Number(second.headers.get('age') ?? 0) > 0) {
      return { detail: `a cache answers ${base}${path} in place of the edge`, fix: CACHE_ADVICE };
    }
  }
  return null;
}
