import * as z from 'zod/mini';
import {
  type BootDraft,
  type Consent,
  defineRoute,
  type PluginContext,
  type ProfileRecord,
} from '../contract.ts';
import type { RegistryDomain } from '../document.ts';
import { answerCookies } from './answer-cookies.ts';
import { readCookie, serializeCookie } from './cookie-header.ts';
import { continueSession, randomId, SESSION_IDLE, wellFormedId } from './identity.ts';

const bootRequest = z.object({
  loader: z.string(),
  url: z.string(),
  referrer: z.optional(z.string()),
  fpid: z.optional(z.string()),
  session: z.optional(z.object({ id: z.string() })),
  consent: z.optional(z.catchall(z.object({}), z.literal(['granted', 'denied']))),
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
    const page = URL.parse(body.url);
    if (page === null || !/^https?:$/.test(page.protocol)) {
      throw context.problem('malformed_request', 'url must be an http(s) address');
    }
    if (!(await context.ownsLoader(body.loader))) throw context.problem('unknown_loader');
    const domain = context.domainOf(page.hostname);
    if (domain === undefined) throw context.problem('unknown_site');

    const consent = context.consent(body.consent ?? {});
    const header = request.headers.get('cookie');
    const known = wellFormedId(readCookie(header, '_fpid'), body.fpid);
    return consent.identify
      ? identified(context, domain, consent, body, known, header)
      : anonymous(context, domain, consent, body, known);
  },
});

/** Nothing may be known or kept: what was kept goes, no cookie is set. */
async function anonymous(
  context: PluginContext,
  domain: RegistryDomain,
  consent: Consent,
  body: BootRequest,
  known: string | undefined,
): Promise<Response> {
  if (known !== undefined) await context.profiles.write(known, null);
  const draft = newDraft(domain, consent, body, null);
  await context.bootstrap(draft);
  return answer(context, draft, null, { id: randomId(), isNew: true }, null);
}

async function identified(
  context: PluginContext,
  domain: RegistryDomain,
  consent: Consent,
  body: BootRequest,
  known: string | undefined,
  header: string | null,
): Promise<Response> {
  const id = known ?? randomId();
  // A key that was just made is never read: KV would remember that it isn't there.
  const held = known === undefined ? null : await context.profiles.read(known);
  const now = context.now();
  const session = continueSession(body.session?.id, held?.session ?? null, now);
  const record: ProfileRecord | null =
    held === undefined
      ? null
      : {
          version: 1,
          session: { id: session.id, lastSeenAt: now },
          // A withdrawal deletes, whatever the flags say.
          cookies: (held?.cookies ?? []).filter(({ name }) => consent.allows(name)),
        };
  const draft = newDraft(domain, consent, body, record);
  await context.bootstrap(draft);
  if (record !== null) await context.profiles.write(id, record);
  return answer(context, draft, { id, isNew: known === undefined }, session, header);
}

function newDraft(
  domain: RegistryDomain,
  consent: Consent,
  body: BootRequest,
  record: ProfileRecord | null,
): BootDraft {
  return { domain, consent, sentCookies: body.cookies ?? {}, record, restoreCookies: [] };
}

function answer(
  context: PluginContext,
  draft: BootDraft,
  profile: { id: string; isNew: boolean } | null,
  session: { id: string; isNew: boolean },
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
