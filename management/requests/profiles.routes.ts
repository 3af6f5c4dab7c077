import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { ADS_COOKIE, ANALYTICS_COOKIE } from '../../plugins/purposes.ts';
import { consentOfManifest } from '../../sites/manifest/consent.ts';
import { demandContainer } from '../access/containers.ts';
import { type CallContext, ProvisionerError } from '../clients/provisioner-client.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { dryRunQuery, isDryRun } from '../view/plan.ts';
import { profileErased, profileParams, profilePlan, profileView } from './profiles.schema.ts';

/**
 * Seconds until a deletion has reached every data centre, which may answer a read from its own copy for a minute. Source:
 * Cloudflare's documentation, Workers KV, How KV works, Consistency.
 */
const SPREAD_SECONDS = 60;

/** The URL identifies a visitor, so the log lines at the start and end of these requests are left out. */
const QUIET = 'warn';

/** The part of the edge's profile that is shown (docs/stores.md). */
const stored = z.object({
  session: z.object({ lastSeenAt: z.number() }).nullable(),
  cookies: z.array(
    z.object({ name: z.string(), value: z.string(), setAt: z.number(), expiresAt: z.number() }),
  ),
  startedAt: z.number().optional(),
});
const answered = z.object({ profile: z.string().nullable() });
const deleted = z.object({ deleted: z.literal(true) });

/** A visitor's request to know or to erase what the edge keeps of them, by the value of their cookie. */
export function profilesRoutes({ db, provisioner, clock }: Context): FastifyPluginAsyncZod {
  const pathOf = (site: string, visitor: string) => `/sites/${site}/profiles/${visitor}`;

  async function kept(site: string, visitor: string, context: CallContext) {
    const call = { method: 'GET', path: pathOf(site, visitor), context } as const;
    const { profile } = await orUnavailable(provisioner.ask(answered, call));
    return profile === null ? null : stored.parse(JSON.parse(profile));
  }

  return async (app) => {
    app.get(
      '/server-containers/:id/profiles/:fpid',
      {
        config: { access: 'own' },
        logLevel: QUIET,
        schema: {
          operationId: 'readProfile',
          summary: 'Read what the edge keeps of one visitor; the audit log names who has read it',
          tags: ['requests'],
          params: profileParams,
          response: {
            200: profileView,
            ...problems('invalid_request', 'forbidden', 'unknown_container', 'host_unavailable'),
          },
        },
      },
      async (request) => {
        const { id, fpid } = request.params;
        const caller = callerOf(request);
        const row = await demandContainer(db, id, caller, 'own');
        const found = await kept(row.site_id, fpid, { requestId: request.id });
        // Other reads are not in the audit log; this one is recorded there before the answer.
        await db
          .insertInto('audit_log')
          .values({
            actor: caller.subject,
            action: 'readProfile',
            request_id: request.id,
            container_id: id,
            client_id: row.client_id,
            status: 200,
          })
          .execute();
        return {
          profile: found && {
            since: timeOf(found.startedAt),
            lastSeenAt: timeOf(found.session?.lastSeenAt),
            cookies: found.cookies.map(({ name, value, setAt, expiresAt }) => ({
              name,
              value,
              purpose: purposeOf(name),
              setAt: new Date(setAt).toISOString(),
              expiresAt: new Date(expiresAt).toISOString(),
            })),
          },
          consent: consentOfManifest(row.manifest),
        };
      },
    );

    app.delete(
      '/server-containers/:id/profiles/:fpid',
      {
        config: { access: 'own' },
        logLevel: QUIET,
        schema: {
          operationId: 'eraseProfile',
          summary: 'Erase what the edge keeps of one visitor',
          description:
            'A visit before `erasedBy` may store the profile again from a data centre’s copy: read the profile after `erasedBy`, and repeat the deletion if it is there.',
          tags: ['requests'],
          params: profileParams,
          querystring: dryRunQuery,
          response: {
            200: z.union([profileErased, profilePlan]),
            ...problems('invalid_request', 'forbidden', 'unknown_container', 'host_unavailable'),
          },
        },
      },
      async (request) => {
        const { id, fpid } = request.params;
        const { site_id: site } = await demandContainer(db, id, callerOf(request), 'own');
        const context = { requestId: request.id };
        const found = await kept(site, fpid, context);
        if (isDryRun(request.query)) {
          return { plan: { cookies: found?.cookies.map(({ name }) => name) ?? [] } };
        }
        const call = { method: 'DELETE', path: pathOf(site, fpid), context } as const;
        // KV accepts one write a second per key, so a repeated request must not delete a profile that is already gone.
        if (found !== null) await orUnavailable(provisioner.ask(deleted, call));
        const erasedBy = new Date(clock.date().getTime() + SPREAD_SECONDS * 1_000).toISOString();
        return { erased: found !== null, erasedBy };
      },
    );
  };
}

function purposeOf(name: string): 'analytics' | 'ads' | 'both' {
  if (ANALYTICS_COOKIE.test(name)) return 'analytics';
  return ADS_COOKIE.test(name) ? 'ads' : 'both';
}

function timeOf(at: number | undefined): string | null {
  return at === undefined ? null : new Date(at).toISOString();
}

/** Throws `host_unavailable` where the provisioner doesn't answer. */
async function orUnavailable<Answer>(work: Promise<Answer>): Promise<Answer> {
  try {
    return await work;
  } catch (cause) {
    if (!(cause instanceof ProvisionerError)) throw cause;
    throw new ManagementProblem('host_unavailable', { detail: cause.message, cause });
  }
}
