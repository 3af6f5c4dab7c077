import * as z from 'zod/mini';
import { type Consent, consentChoices } from '../consent.ts';
import { type BootDraft, type CORE_BOOT_MEMBERS, defineRoute, type PluginContext } from '../contract.ts';
import type { RegistryDomain } from '../document.ts';
import {
  cookieValues,
  isFirstParty,
  type NamedCookies,
  namesOfCookies,
  type StoredCookie,
} from '../profile.ts';
import { answerCookies } from './answer-cookies.ts';
import { BOOT_PATH } from './config.ts';
import { setsId } from './cookie-header.ts';
import { type IdentifiedVisitor, identify, randomId, wellFormedId, withdraw } from './identity.ts';
import { keepProfile, newProfile } from './profile.ts';
import { SESSION_IDLE_MS, type Session, sessionToken } from './session.ts';

const bootRequest = z.object({
  loader: z.string(),
  /** The page's origin. Older loaders send the whole address. */
  url: z.string(),
  fpid: z.optional(z.string()),
  session: z.optional(z.object({ id: z.string() })),
  consent: consentChoices,
  cookies: z.optional(z.catchall(z.object({}), z.string())),
  /** True if the visitor has denied what `consent` denies; otherwise that may be only a default of the page. */
  withdrawn: z.optional(z.boolean()),
});

type BootRequest = z.infer<typeof bootRequest>;

type CoreMembers = Record<(typeof CORE_BOOT_MEMBERS)[number], unknown>;

/** POST /boot: identifies the visitor as far as consent allows, and answers what the page needs to load its tags. */
export const bootRoute = defineRoute({
  method: 'POST',
  path: BOOT_PATH,
  cors: true,
  setsId: true,
  body: bootRequest,
  async handle(input, context) {
    const { body } = input;
    const cookieHeader = input.header('cookie');
    const domain = await domainOf(body, context);
    const consent = context.consent(body.consent ?? {});
    context.log({ consent: consent.state });
    // On another host, for example the edge hostname, a foreign page may have set the cookie for many sites at once.
    const isOwnHost = isFirstParty(context.hostname, domain);
    const cookies = { sent: body.cookies ?? {}, header: isOwnHost ? cookieHeader : null };
    const cookieIds = cookieValues(cookieHeader, '_fpid');
    const sentId = wellFormedId(...(isOwnHost ? cookieIds : []), body.fpid);
    if (context.isBot || !consent.identify) {
      // A denial deletes the stored profile. Without a choice it is kept: the rules may be stricter only this time,
      // because the place is unknown. For a bot, nothing is written.
      const ended = context.isBot || !consent.isDenied ? [] : await withdraw(context, sentId, cookies);
      const none = { sent: {}, header: null };
      return await answer(context, { domain, consent, cookies: none, cookieIds, visitor: null, ended });
    }
    const visitor = await identify(context, { sentId, named: body.session?.id, cookies });
    const kept = body.withdrawn ? (visitor.profile.record?.cookies ?? []) : [];
    const ended = kept.filter(({ name }) => !consent.allows(name));
    return await answer(context, { domain, consent, cookies, cookieIds, visitor, ended });
  },
});

interface Visit {
  readonly domain: RegistryDomain;
  readonly consent: Consent;
  readonly cookies: NamedCookies;
  /** The ids in the request's own `cookie` header, whatever its host. */
  readonly cookieIds: readonly string[];
  readonly visitor: IdentifiedVisitor | null;
  /** The cookies that were kept until the visitor denied them. */
  readonly ended: readonly StoredCookie[];
}

/** Made once: the runtime copies `Headers` much faster than it reads them from an object. */
const ANSWER = {
  headers: new Headers({ 'content-type': 'application/json', 'cache-control': 'no-store' }),
};

/** JSON with ASCII characters only, so that its length in octets is known without encoding it. */
const asciiJson = (value: object) =>
  JSON.stringify(value).replaceAll(
    /[^\0-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** Runs the hooks, keeps what they change in the visitor's record, and answers the page. */
async function answer(
  context: PluginContext,
  { domain, consent, cookies, cookieIds, visitor, ended }: Visit,
): Promise<Response> {
  const now = context.now();
  const session: Session = visitor?.session ?? { id: randomId(), isNew: true };
  const profile = visitor?.profile ?? newProfile(context, '');
  const draft: BootDraft = {
    domain,
    consent,
    id: visitor?.id ?? null,
    sentCookies: cookies.sent,
    presentCookies: new Set([...Object.keys(cookies.sent), ...namesOfCookies(cookies.header)]),
    record:
      visitor === null || profile.record === undefined
        ? null
        : {
            ...profile.record,
            version: 1,
            session: { id: session.id, lastSeenAt: now },
            // Cookies without consent are deleted, whichever plugins are on.
            cookies: (profile.record?.cookies ?? []).filter(({ name }) => consent.allows(name)),
            startedAt: profile.endsAt - context.identityMs,
          },
    isDerivedKey: visitor !== null && profile.key !== visitor.id,
    endsAt: profile.endsAt,
    setCookies: [],
  };
  const given = await context.bootstrap(draft);
  // No plugin may restore the id cookie: this route sets it, to the visitor's own id.
  const restoreCookies = (given.restoreCookies ?? []).filter(
    ({ name, value }) => !setsId(`${name}=${value}`),
  );
  if (draft.record !== null) await keepProfile(context, profile, draft.record);

  const lines = answerCookies(context.hostname, draft, {
    cookieIds,
    restored: restoreCookies,
    ended,
    now,
  });
  // Cookies that scripts can't read can only be deleted by `Set-Cookie`, so the page gets only the names of the others.
  const seen = ended.filter(({ attributes }) => !/httponly/i.test(`${attributes}`)).map(({ name }) => name);
  const core: CoreMembers = {
    container: {
      id: context.site.containerId,
      token: domain.token,
      webTagId: domain.webTagId,
      scriptUrl: `${context.base}/c/${domain.token}.js`,
    },
    site: { id: context.site.siteId, domain: domain.domain },
    features: context.features,
    profile: visitor === null ? null : { id: visitor.id, isNew: visitor.isNew },
    deleteCookies: seen.length > 0 ? seen : undefined,
    session: {
      id: session.id,
      isNew: session.isNew,
      expiresAt: new Date(now + SESSION_IDLE_MS).toISOString(),
      token:
        visitor === null
          ? undefined
          : await sessionToken(context, visitor.id, { id: session.id, isKept: profile.isKept }),
    },
  };
  const text = asciiJson({ ...core, ...given, restoreCookies });
  const response = new Response(text, ANSWER);
  response.headers.set('content-length', String(text.length));
  for (const line of lines) response.headers.append('set-cookie', line);
  return response;
}

/** The domain of the page that sends the request. Throws if the page or its loader is not the site's. */
async function domainOf({ loader, url }: BootRequest, context: PluginContext): Promise<RegistryDomain> {
  const domain = domainOfPage(url, context);
  if (!(await context.ownsLoader(loader))) throw context.problem('unknown_loader');
  if (domain === undefined) throw context.problem('unknown_site');
  return domain;
}

/** The domains of origins that the isolate has seen, because parsing an address is slow. Dropped with the site's documents. */
const origins = new WeakMap<PluginContext['site'], Map<string, RegistryDomain>>();
const MAX_ORIGINS = 100;
/**
 * `https://`, the longest host name of DNS, and a port. Longer ones are not remembered: `URL` accepts hosts of any
 * length.
 */
const MAX_ORIGIN_LENGTH = 8 + 253 + 6;

function domainOfPage(url: string, { site, domainOf, problem }: PluginContext): RegistryDomain | undefined {
  const known = origins.get(site);
  const seen = known?.get(url);
  if (seen !== undefined) return seen;
  const page = URL.parse(url);
  if (page === null || !/^https?:$/.test(page.protocol)) {
    throw problem('malformed_request', 'url must be an http(s) address');
  }
  const domain = domainOf(page.hostname);
  // The whole addresses that older loaders send are not remembered: they would displace origins.
  if (domain !== undefined && url === page.origin && url.length <= MAX_ORIGIN_LENGTH) {
    origins.set(site, (known && known.size < MAX_ORIGINS ? known : new Map()).set(url, domain));
  }
  return domain;
}
