import * as z from 'zod/mini';
import { type BootDraft, consentChoices, defineRoute, type PluginContext } from '../contract.ts';
import type { RegistryDomain } from '../document.ts';
import { answerCookies } from './answer-cookies.ts';
import { readCookie, serializeCookie } from './cookie-header.ts';
import { continueSession, randomId, SESSION_IDLE, type Session, wellFormedId } from './identity.ts';

const bootRequest = z.object({
  loader: z.string(),
  url: z.string(),
  referrer: z.optional(z.string()),
  fpid: z.optional(z.string()),
  session: z.optional(z.object({ id: z.string() })),
  consent: consentChoices,
  cookies: z.optional(z.catchall(z.object({}), z.string())),
});

type BootRequest = z.infer<typeof bootRequest>;

/** POST /boot: who this is, as far as consent lets us know, and what the page needs to go on. */
export const bootRoute = defineRoute({
  method: 'POST',
  path: '/boot',
  cors: true,
  body: bootRequest,
  async handle({ request, body }, context) {
    const domain = await domainOf(body, context);
    const consent = context.consent(body.consent ?? {});
    const header = request.headers.get('cookie');
    const known = wellFormedId(readCookie(header, '_fpid'), body.fpid);
    const id = consent.identify ? (known ?? randomId()) : null;
    // Nobody may be known: what was kept goes.
    if (id === null && known !== undefined) await context.profiles.write(known, null);
    // A key that was just made is never read: KV would remember that it isn't there.
    const held = id !== null && id === known ? await context.profiles.read(id) : null;
    const now = context.now();
    const session = continueSession(body.session?.id, held?.session ?? null, now);
    const draft: BootDraft = {
      domain,
      consent,
      sentCookies: body.cookies ?? {},
      record:
        id === null || held === undefined
          ? null
          : {
              version: 1,
              session: { id: session.id, lastSeenAt: now },
              // A withdrawal deletes, whatever the flags say.
              cookies: (held?.cookies ?? []).filter(({ name }) => consent.allows(name)),
            },
      restoreCookies: [],
    };
    await context.bootstrap(draft);
    if (id !== null && draft.record !== null) await context.profiles.write(id, draft.record);
    return answer(context, draft, id === null ? null : { id, isNew: known === undefined }, session, header);
  },
});

/** The domain whose page asks, once it is clear that it may. */
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

function answer(
  context: PluginContext,
  draft: BootDraft,
  profile: { id: string; isNew: boolean } | null,
  session: Session,
  header: string | null,
): Response {
  const { domain, restoreCookies } = draft;
  const headers = new Headers({ 'cache-control': 'no-store' });
  for (const cookie of answerCookies(context.url.hostname, draft, profile?.id, header)) {
    headers.append('set-cookie', serializeCookie(cookie));
  }
  return Response.json(
    {
      container: {
        id: context.site.containerId,
        token: domain.token,
        webTagId: domain.webTagId,
        scriptUrl: new URL(`/c/${domain.token}.js`, context.url).href,
      },
      site: { id: context.site.siteId, domain: domain.domain },
      features: context.features,
      profile,
      session: { ...session, expiresAt: new Date(context.now() + SESSION_IDLE).toISOString() },
      restoreCookies,
    },
    { headers },
  );
}
