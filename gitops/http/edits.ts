import { identityToRecipient } from 'age-encryption';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { systemClock } from '../../base/clock.ts';
import { fieldErrors } from '../../base/http/problem.ts';
import { givenDomain, imageReference, siteId } from '../../sites/manifest/schema.ts';
import { identitiesIn } from '../../sites/manifest/secrets.ts';
import { claims } from '../desired/claims.ts';
import type { Operation } from '../report/report.ts';
import { IMAGE_SUBJECT } from '../report/rollout.ts';
import type { DaemonDeps } from './deps.ts';
import { ProvisionerProblem } from './errors.ts';
import {
  bindable,
  isInForce,
  refuseForeignDomains,
  refuseStuck,
  refuseTaken,
  refuseWithoutRoom,
} from './refusals.ts';
import { manifestOf, optionalBody, requestHeader, siteIdParams } from './request.ts';
import { revertOf } from './revert.ts';
import * as edits from './site-edits.ts';

/** `commit: false`: git holds the removal already. A commit now could undo a revert that was made since. */
const deprovisionBody = z.strictObject({ site: siteId, commit: z.boolean().default(true) });
const customDomain = { site: siteId, domain: givenDomain };
const customDomainBody = z.strictObject(customDomain);
const customDomainQuery = z.object(customDomain);
/** `removal: false`: refuses a revert that would remove the site. */
const revertBody = z.strictObject({
  revision: z.string().min(1).max(200).optional(),
  removal: z.boolean().default(true),
});
/** `serving: false`: the edge answers nothing of the site; changes are applied. */
const suspendBody = z.strictObject({ serving: z.boolean().default(true) });
const imageBody = z.strictObject({ image: imageReference });
const pruneBody = z.strictObject({ olderThanDays: z.number().min(0).max(36_500).default(30) });
/** Seconds for which the answer waits for the end of the operation. */
const querystring = z.looseObject({ wait: z.coerce.number().min(0).max(60).optional() });

/** `revision`: a commit with this manifest. Git has the site already, so only what a clone has copied is committed. */
const provisionQuery = querystring.extend({
  revision: z
    .string()
    .regex(/^[0-9a-f]{40,64}$/, 'must be the full id of a commit')
    .optional(),
});

const DAY_MS = 86_400_000;

interface Edit {
  readonly site: string;
  /** Start of the commit's subject, before the site id. */
  readonly verb: string;
  readonly edit: (text: string | null) => string | null | Promise<string | null>;
  readonly trailers?: Readonly<Record<string, string>>;
  /** `false`: the text is written as it is, without binding its secrets: a revert restores what was. */
  readonly bindsSecrets?: boolean;
}

interface Committed {
  readonly site: string;
  readonly kind: Operation['kind'];
  readonly revision: string;
  /** `false`: the desired state was already as requested, and there is nothing to do. */
  readonly changed: boolean;
  readonly wait: number | undefined;
}

/** Changes of the desired state. Each is one commit of one site's file. */
export function editRoutes(deps: DaemonDeps): FastifyPluginAsyncZod {
  const { repo, reader, loop, operations, clock = systemClock } = deps;
  const stopping = new AbortController();

  function commitEdit(
    request: FastifyRequest,
    { site, verb, edit, trailers = {}, bindsSecrets = true }: Edit,
  ) {
    const actor = requestHeader(request, 'x-actor') ?? 'provisioner';
    const reason = requestHeader(request, 'x-reason');
    return repo.commit({
      site,
      edit: async (text) => {
        const edited = await edit(text);
        const isChanged = bindsSecrets && edited !== null && edited !== text;
        return isChanged && (await isInForce(deps, site))
          ? edits.bindText(deps.ageIdentity, site, edited)
          : edited;
      },
      subject: `${verb} ${site}`,
      author: { name: actor, email: actor.includes('@') ? actor : 'provisioner@localhost' },
      trailers: {
        Site: site,
        Actor: actor,
        'Request-Id': request.id,
        ...(reason === null ? {} : { Reason: reason }),
        ...trailers,
      },
    });
  }

  /**
   * 202 with the operation to poll. With `?wait=` 200 with its result, or `still_running` at the end of that time, or at
   * once if the daemon stops.
   */
  async function answer(
    reply: FastifyReply,
    { site, kind, revision, changed, wait }: Committed,
  ): Promise<unknown> {
    if (!changed) return reply.send({ site, revision, changed: false });
    const { id } = operations.create(site, kind, revision);
    loop.trigger();
    const link = { id, url: `/operations/${id}` };
    if (wait === undefined) return reply.status(202).send({ site, revision, operation: link });
    await operations.finished(id, wait * 1000, stopping.signal);
    const operation = operations.get(id);
    if (operation === null || operation.finishedAt === null) {
      throw new ProvisionerProblem('still_running', { operation: link });
    }
    return reply.status(200).send({ site, revision, operation });
  }

  return async (app) => {
    app.addHook('preClose', async () => stopping.abort());
    // The manifest isn't in the route's schema, because an invalid one has an error code of its own.
    app.post('/provision', { schema: { querystring: provisionQuery } }, async (request, reply) => {
      const manifest = manifestOf(request.body, deps.host);
      const { site } = manifest;
      const { wait, revision: basis } = request.query;
      if (manifest.state === 'present') {
        await refuseTaken(deps, site, claims(manifest));
        await refuseForeignDomains(deps, manifest);
      }
      // With a basis, git has the site already: the attempt to apply it shows whether there is room for it.
      if (manifest.state === 'present' && basis === undefined) refuseWithoutRoom(deps, site);
      const edit = async (current: string | null) => {
        const given = { current, mayBind: await bindable(deps, manifest) };
        return basis === undefined
          ? await edits.provisionEdit(deps.ageIdentity, manifest, given)
          : await edits.stillPresent(deps.ageIdentity, manifest, { ...given, revision: basis });
      };
      const { revision } = await commitEdit(request, { site, verb: 'Provision', edit });
      return answer(reply, { site, kind: 'provision', revision, changed: true, wait });
    });

    app.post(
      '/custom-domain',
      { schema: { querystring, body: customDomainBody } },
      async (request, reply) => {
        const { site, domain } = request.body;
        await refuseTaken(deps, site, [`hostname ${domain}`]);
        refuseStuck(deps, site);
        const { revision } = await commitEdit(request, {
          site,
          verb: `Add custom domain ${domain} to`,
          edit: (text) => edits.addCustomDomain(site, domain, text),
        });
        const { wait } = request.query;
        return answer(reply, { site, kind: 'custom_domain', revision, changed: true, wait });
      },
    );

    app.delete(
      '/custom-domain',
      { schema: { querystring, body: customDomainBody.nullish() } },
      async (request, reply) => {
        const { site, domain } = request.body ?? domainInQuery(request.query);
        const committed = await commitEdit(request, {
          site,
          verb: `Remove custom domain ${domain} from`,
          edit: (text) => edits.removeCustomDomain(site, domain, text),
        });
        const { wait } = request.query;
        return answer(reply, { site, kind: 'custom_domain', ...committed, wait });
      },
    );

    app.post('/deprovision', { schema: { querystring, body: deprovisionBody } }, async (request, reply) => {
      const { site, commit } = request.body;
      const { revision, changed } = await commitEdit(request, {
        site,
        verb: 'Remove',
        edit: (text) => (commit ? edits.removeSite(site, text) : edits.unchanged(site, text)),
      });
      const isRemoved = !changed && loop.status(site)?.reason === 'Removed';
      const { wait } = request.query;
      return answer(reply, { site, kind: 'deprovision', revision, changed: !isRemoved, wait });
    });

    app.post(
      '/sites/:site/revert',
      { schema: { params: siteIdParams, querystring, body: optionalBody(revertBody) } },
      async (request, reply) => {
        const { site } = request.params;
        const { revision, removal } = request.body;
        const { reverted, edit } = await revertOf(repo, site, {
          revision,
          removal,
          host: deps.host,
          keyFile: deps.ageIdentity,
        });
        const trailers = { Reverts: reverted };
        const committed = await commitEdit(request, {
          site,
          verb: 'Revert',
          edit,
          trailers,
          bindsSecrets: false,
        });
        const { wait } = request.query;
        return answer(reply, { site, kind: 'revert', ...committed, wait });
      },
    );

    app.post(
      '/sites/:site/suspend',
      { schema: { params: siteIdParams, querystring, body: optionalBody(suspendBody) } },
      async (request, reply) => {
        const { site } = request.params;
        const { serving } = request.body;
        const committed = await commitEdit(request, {
          site,
          verb: serving ? 'Suspend' : 'Switch off the serving of',
          edit: (text) => (serving ? edits.suspendSite(site, true, text) : edits.stopServing(site, text)),
        });
        return answer(reply, { site, kind: 'suspend', ...committed, wait: request.query.wait });
      },
    );

    app.post(
      '/sites/:site/resume',
      { schema: { params: siteIdParams, querystring } },
      async (request, reply) => {
        const { site } = request.params;
        const committed = await commitEdit(request, {
          site,
          verb: 'Resume',
          edit: (text) => edits.suspendSite(site, false, text),
        });
        return answer(reply, { site, kind: 'resume', ...committed, wait: request.query.wait });
      },
    );

    app.post(
      '/sites/:site/image',
      { schema: { params: siteIdParams, querystring, body: imageBody } },
      async (request, reply) => {
        const { site } = request.params;
        const { image } = request.body;
        const committed = await commitEdit(request, {
          site,
          verb: IMAGE_SUBJECT,
          edit: (text) => edits.changeImage(site, image, text),
        });
        return answer(reply, { site, kind: 'image', ...committed, wait: request.query.wait });
      },
    );

    app.post('/keys/age', { schema: { body: optionalBody(z.strictObject({})) } }, async (request) => {
      const head = await repo.head();
      const sites = head === null ? [] : [...(await reader.read(head)).sites.keys()];
      const edited = await Promise.allSettled(
        sites.map((site) =>
          commitEdit(request, {
            site,
            verb: 'Encrypt the secrets anew of',
            edit: (text) => edits.rotateSecrets(deps.ageIdentity, site, text),
          }),
        ),
      );
      loop.trigger();
      const [first = ''] = identitiesIn(deps.ageIdentity);
      return {
        recipient: await identityToRecipient(first),
        rotated: sites.filter((_, index) => {
          const one = edited[index];
          return one?.status === 'fulfilled' && one.value.changed;
        }),
        failed: sites.flatMap((site, index) => {
          const one = edited[index];
          return one?.status === 'rejected' ? [{ site, reason: reasonOf(one.reason) }] : [];
        }),
      };
    });

    app.post('/prune', { schema: { querystring, body: optionalBody(pruneBody) } }, async (request) => {
      const before = clock.date().getTime() - request.body.olderThanDays * DAY_MS;
      const removed = loop.statuses().filter(({ reason }) => reason === 'Removed');
      const pruned = await Promise.all(
        removed.map(async ({ site }) => {
          const [last] = await repo.history(site, 1);
          if (last === undefined || Date.parse(last.at) > before) return [];
          const { changed } = await commitEdit(request, {
            site,
            verb: 'Prune',
            edit: (text) => edits.pruneTombstone(site, text),
          });
          return changed ? [site] : [];
        }),
      );
      loop.trigger();
      return { pruned: pruned.flat().sort() };
    });
  };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A DELETE may name the domain in its query, because some clients send no body with it. */
function domainInQuery(query: unknown): z.output<typeof customDomainQuery> {
  const result = customDomainQuery.safeParse(query);
  if (result.success) return result.data;
  throw new ProvisionerProblem('malformed_request', { errors: fieldErrors(result.error.issues) });
}
