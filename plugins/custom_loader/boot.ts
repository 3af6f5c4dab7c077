import * as z from 'zod/mini';
import {
  type BootDraft,
  type CORE_BOOT_MEMBERS,
  consentChoices,
  defineRoute,
  type PluginContext,
} from '../contract.ts';
import type { RegistryDomain } from '../document.ts';
import { answerCookies, isFirstParty } from './answer-cookies.ts';
import { BOOT_PATH } from './config.ts';
import { cookieValues, serializeCookie } from './cookie-header.ts';
import { continueSession, randomId, SESSION_IDLE_MS, wellFormedId } from './identity.ts';

const bootRequest = z.object({
  loader: z.string(),
  /** The page's origin. Older loaders send the whole address. */
  url: z.string(),
  fpid: z.optional(z.string()),
  session: z.optional(z.object({ id: z.string() })),
  consent: consentChoices,
  cookies: z.optional(z.catchall(z.object({}), z.string())),
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
  async handle({ request, body }, context) {
    const domain = await domainOf(body, context);
    const consent = context.consent(body.consent ?? {});
    const cookieHeader = request.headers.get('cookie');
    const firstParty = isFirstParty(context.url.hostname, domain);
    // On another host, for example the edge hostname, a foreign page may have set the cookie for many sites at once.
    const ownIds = firstParty ? cookieValues(cookieHeader, '_fpid') : [];
    const knownId = wellFormedId(...ownIds, body.fpid);
    const id = consent.identify ? (knownId ?? randomId()) : null;
    // Without consent the stored profile is deleted.
    if (id === null && knownId !== undefined) await context.profiles.write(knownId, null);
    // A new id is not read: KV would cache that it is missing.
    const stored = id !== null && id === knownId ? await context.profiles.read(id) : null;
    const now = context.now();
    const session = continueSession(body.session?.id, stored?.session ?? null, now);
    const draft: BootDraft = {
      domain,
      consent,
      sentCookies: (consent.identify ? body.cookies : undefined) ?? {},
      record:
        id === null || stored === undefined
          ? null
          : {
              version: 1,
              session: { id: session.id, lastSeenAt: now },
              // A withdrawn consent deletes cookies, whichever plugins are on.
              cookies: (stored?.cookies ?? []).filter(({ name }) => consent.allows(name)),
            },
    };
    const given = await context.bootstrap(draft);
    // No plugin may restore an id: this route answers the visitor's own.
    const restoreCookies = (given.restoreCookies ?? []).filter(({ name }) => name !== '_fpid');
    const members = { ...given, restoreCookies };
    if (id !== null && draft.record !== null) await context.profiles.write(id, draft.record);

    const headers = new Headers({ 'cache-control': 'no-store' });
    for (const cookie of answerCookies(context.url.hostname, draft, {
      id,
      cookieHeader,
      restored: restoreCookies,
    })) {
      headers.append('set-cookie', serializeCookie(cookie));
    }
    const core: CoreMembers = {
      container: {
        id: context.site.containerId,
        token: domain.token,
        webTagId: domain.webTagId,
        scriptUrl: `${context.base}/c/${domain.token}.js`,
      },
      site: { id: context.site.siteId, domain: domain.domain },
      features: context.features,
      profile: id === null ? null : { id, isNew: knownId === undefined },
      session: { ...session, expiresAt: new Date(now + SESSION_IDLE_MS).toISOString() },
    };
    return Response.json({ ...core, ...members }, { headers });
  },
});

/** The domain of the page that sends the request. Throws where the page or its loader is not the site's. */
async function domainOf({ loader, url }: BootRequest, context: PluginContext): Promise<RegistryDomain> {
  const page = URL.parse(url);
  if (page === null || !/^https?:$/.test(page.protocol)) {
    throw context.problem('malformed_request', 'url must be an http(s) address');
  }
  if (!(await context.ownsLoader(loader))) throw context.problem('unknown_loader');
  const domain = context.domainOf(page.hostname);
  if (domain === undefined) throw context.problem('unknown_site');
  return domain;
}
