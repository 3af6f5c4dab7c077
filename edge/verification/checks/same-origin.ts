import { type CheckContext, type ForwardedDomain, forwardedDomains } from '../check.ts';
import { type Finding, failed, passed } from '../result.ts';
import { described, isProblem } from '../visit.ts';
import { findPages } from './pages.ts';
import { comparePlaces, passesClaimedPlace } from './place.ts';

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
/** Addresses of private networks: a server between, never a visitor. */
const PRIVATE = /^(?:10\.|127\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|::1$|f[cd])/i;

const ASPECTS: readonly Aspect[] = [loaderFault, cacheFault, cookieFault, addressFault, countryFault];

/** Sends requests to the prefix on the pages' own host, as a browser does. The first fault counts. */
export async function checkSameOrigin(context: CheckContext) {
  return await Promise.all(
    forwardedDomains(context.site).map(async (forwarded): Promise<Finding> => {
      const { domain, path } = forwarded;
      const { origin } = await findPages(context, forwarded);
      const prefix = { ...forwarded, base: origin + path };
      for (const aspect of ASPECTS) {
        const fault = await aspect(context, prefix);
        if (fault !== null) return failed(domain, fault.detail, fault.fix);
      }
      const { country, remark, advice } = await comparePlaces(context, prefix.base);
      const visitor = country === null ? 'address' : `address and country (${country})`;
      return passed(
        domain,
        `${prefix.base} leads to the edge, with cookies and the visitor’s ${visitor}, uncached${remark ? `; ${remark}` : ''}`,
        advice,
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

/** The addresses with which a visitor of the edge hostname and one of the prefix arrive; `null`: that is not known. */
async function addresses({ site, visit }: CheckContext, { base }: Prefix) {
  const [direct, forwarded] = await Promise.all([
    visit(new URL('/_/tagyard/arrival', site.edge)),
    visit(new URL(`${base}/_/tagyard/arrival`), { headers: { 'x-tagyard-visitor': CLAIMED_ADDRESS } }),
  ]);
  if (forwarded.status !== 200 || isProblem(forwarded)) return null;
  return { direct: direct.text.trim().slice(0, 64), arrived: forwarded.text.trim().slice(0, 64) };
}

/** A false address in the forwarder's own header must not arrive, nor the address of a server between. */
async function addressFault(context: CheckContext, prefix: Prefix): Promise<Fault> {
  const { host } = context;
  const { base, domain } = prefix;
  const known = await addresses(context, prefix);
  if (known === null) return null;
  const { direct, arrived } = known;
  if (arrived !== '' && arrived === direct) return null;
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

/** A claimed country must not arrive. One visitor, known by its address, can't be in two countries. */
async function countryFault(context: CheckContext, prefix: Prefix): Promise<Fault> {
  const { base } = prefix;
  if (await passesClaimedPlace(context, base)) {
    return {
      detail: `a visitor of ${base} can claim any country or region: the server passes it on`,
      fix: SNIPPET_ADVICE,
    };
  }
  const known = await addresses(context, prefix);
  if (known === null || known.arrived !== known.direct) return null;
  const { isDifferent, remark } = await comparePlaces(context, base);
  if (!isDifferent) return null;
  return {
    detail: `at ${base} ${remark}`,
    fix: `Set x-tagyard-country by the visitor’s address from a current database, or don’t send it. ${SNIPPET_ADVICE}`,
  };
}

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
