import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { claims } from '../desired/claims.ts';
import { holdersOf } from '../desired/desired-state.ts';
import { givenDomain, imageReference, siteId } from '../manifest/schema.ts';
import type { Operation } from '../report/report.ts';
import type { SitesRepo } from '../sites-repo/sites-repo.ts';
import type { DaemonDeps } from './deps.ts';
import { ProblemError } from './errors.ts';
import { manifestOf, parse, pickQuery, requestHeader } from './request.ts';
import { revertOf } from './revert.ts';
import * as edits from './site-edits.ts';

/** `commit: false` of who has told git already: an order that was given earlier must not undo a revert that came since. */
const deprovisionBody = z.strictObject({ site: siteId, commit: z.boolean().default(true) });
const customDomainBody = z.strictObject({ site: siteId, domain: givenDomain });
const revertBody = z.strictObject({ revision: z.string().min(1).max(200).optional() });
const imageBody = z.strictObject({ image: imageReference });
const pruneBody = z.strictObject({ olderThanDays: z.number().min(0).max(36_500).default(30) });
const waitQuery = z.looseObject({ wait: z.coerce.number().min(0).max(60).optional() });
const siteParams = z.object({ site: siteId });

const DAY_MS = 86_400_000;

/** What changes the desired state: each of these is one commit of one site's file. */
export function editRoutes(app: FastifyInstance, deps: DaemonDeps): void {
  const { repo, loop, operations } = deps;

  // Before anything is committed: a request that is refused must have changed nothing.
  app.addHook('preHandler', async (request) => {
    parse(waitQuery, request.query);
  });

  app.post('/provision', async (request, reply) => {
    const manifest = manifestOf(request.body, deps.host);
    if (manifest.state === 'present') await refuseTaken(deps, manifest.site, claims(manifest));
    const current = await readText(repo, manifest.site);
    const same =
      current !== null &&
      (await edits.samePlaintext(
        deps.ageIdentity,
        manifest.containerConfig,
        cipherOf(manifest.site, current),
      ));
    const commit = await commitEdit(request, manifest.site, 'Provision', (text) =>
      edits.provisionEdit(manifest, text, same && text === current),
    );
    return answer(request, reply, manifest.site, 'provision', commit.revision);
  });

  app.post('/custom-domain', async (request, reply) => {
    const { site, domain: name } = parse(customDomainBody, request.body);
    await refuseTaken(deps, site, [`hostname ${name}`]);
    const { revision } = await commitEdit(request, site, `Add custom domain ${name} to`, (text) =>
      edits.addCustomDomain(site, name, text),
    );
    return answer(request, reply, site, 'custom_domain', revision);
  });

  app.delete('/custom-domain', async (request, reply) => {
    const { site, domain: name } = parse(
      customDomainBody,
      request.body ?? pickQuery(request.query, ['site', 'domain']),
    );
    const { revision, changed } = await commitEdit(
      request,
      site,
      `Remove custom domain ${name} from`,
      (text) => edits.removeCustomDomain(site, name, text),
    );
    if (!changed) return reply.send({ site, revision, changed: false });
    return answer(request, reply, site, 'custom_domain', revision);
  });

  app.post('/deprovision', async (request, reply) => {
    const { site, commit } = parse(deprovisionBody, request.body);
    const { revision, changed } = await commitEdit(request, site, 'Remove', (text) =>
      commit ? edits.removeSite(site, text) : edits.unchanged(site, text),
    );
    if (!changed && loop.status(site)?.reason === 'Removed')
      return reply.send({ site, revision, changed: false });
    return answer(request, reply, site, 'deprovision', revision);
  });

  app.post('/sites/:site/revert', async (request, reply) => {
    const { site } = parse(siteParams, request.params);
    const { reverted, edit } = await revertOf(repo, site, parse(revertBody, request.body ?? {}).revision);
    const trailers = { Reverts: reverted };
    const { revision, changed } = await commitEdit(request, site, 'Revert', edit, trailers);
    if (!changed) return reply.send({ site, revision, changed: false });
    return answer(request, reply, site, 'revert', revision);
  });

  for (const [verb, suspend] of [['suspend', true] as const, ['resume', false] as const]) {
    app.post(`/sites/:site/${verb}`, async (request, reply) => {
      const { site } = parse(siteParams, request.params);
      const { revision, changed } = await commitEdit(request, site, suspend ? 'Suspend' : 'Resume', (text) =>
        edits.suspendSite(site, suspend, text),
      );
      if (!changed) return reply.send({ site, revision, changed: false });
      return answer(request, reply, site, verb, revision);
    });
  }

  app.post('/sites/:site/image', async (request, reply) => {
    const { site } = parse(siteParams, request.params);
    const { image } = parse(imageBody, request.body);
    const { revision, changed } = await commitEdit(request, site, 'Change the image of', (text) =>
      edits.changeImage(site, image, text),
    );
    if (!changed) return reply.send({ site, revision, changed: false });
    return answer(request, reply, site, 'image', revision);
  });

  app.post('/prune', async (request) => {
    const { olderThanDays } = parse(pruneBody, request.body ?? {});
    const before = Date.now() - olderThanDays * DAY_MS;
    const removed = loop.statuses().filter(({ reason }) => reason === 'Removed');
    const pruned = await Promise.all(
      removed.map(async ({ site }) => {
        const [last] = await repo.history(site, 1);
        if (last === undefined || Date.parse(last.at) > before) return [];
        const { changed } = await commitEdit(request, site, 'Prune', (text) =>
          edits.pruneTombstone(site, text),
        );
        return changed ? [site] : [];
      }),
    );
    loop.trigger();
    return { pruned: pruned.flat().sort() };
  });

  function commitEdit(
    request: FastifyRequest,
    site: string,
    verb: string,
    edit: (text: string | null) => string | null,
    trailers: Readonly<Record<string, string>> = {},
  ) {
    const actor = requestHeader(request, 'x-actor') ?? 'provisioner';
    const reason = requestHeader(request, 'x-reason');
    return repo.commit({
      site,
      edit,
      subject: `${verb} ${site}`,
      author: { name: actor, email: `${actor.includes('@') ? actor : 'provisioner@localhost'}` },
      trailers: {
        Site: site,
        Actor: actor,
        'Request-Id': request.id,
        ...(reason === null ? {} : { Reason: reason }),
        ...trailers,
      },
    });
  }

  /** 202 with the operation to look at, or with `?wait=` its end. */
  async function answer(
    request: FastifyRequest,
    reply: FastifyReply,
    site: string,
    kind: Operation['kind'],
    revision: string,
  ): Promise<unknown> {
    const { wait } = parse(waitQuery, request.query);
    const { id } = operations.create(site, kind, revision);
    loop.trigger();
    const link = { id, url: `/operations/${id}` };
    if (wait === undefined) return reply.status(202).send({ site, revision, operation: link });
    await operations.finished(id, wait * 1000);
    const operation = operations.get(id);
    if (operation === null || operation.finishedAt === null) {
      throw new ProblemError('still_running', undefined, { operation: link });
    }
    return reply.status(200).send({ site, revision, operation });
  }
}

/** Throws where another site of this host has one of `names` already: committed, it would only stall this one. */
async function refuseTaken(
  { repo, reader }: DaemonDeps,
  site: string,
  names: readonly string[],
): Promise<void> {
  const head = await repo.head();
  if (head === null) return;
  const holders = holdersOf(await reader.read(head));
  for (const name of names) {
    const holder = holders.get(name);
    if (holder !== undefined && holder !== site) {
      throw new ProblemError('name_taken', `${name} is held by the site ${holder}`);
    }
  }
}

async function readText(repo: SitesRepo, site: string): Promise<string | null> {
  const head = await repo.head();
  return head === null ? null : ((await repo.readSite(head, site))?.text ?? null);
}

/** The ciphertext in a site's file, or nothing where the file can't be read as a manifest. */
function cipherOf(site: string, text: string): string {
  try {
    return edits.currentManifest(site, text).containerConfig;
  } catch (error) {
    if (error instanceof ProblemError) return '';
    throw error;
  }
}
