import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { CommitEntry } from '../../sites/repo/log.ts';
import { demandRole } from '../access/roles.ts';
import { isOperator } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { callerOf } from '../http/auth.ts';
import { problems } from '../http/openapi.ts';
import { paged, wrongCursor } from '../view/page.ts';
import { changesQuery, commitList } from './instance.schema.ts';
import { changedRevisions, containerIds } from './sites.repository.ts';

interface Page {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** The commits of the instance: all for operators, for others those of containers that they may read. */
export function instanceChangesRoutes({ db, repo, settings }: Context): FastifyPluginAsyncZod {
  /** All commits, as git has them. The cursor is a commit. */
  async function all({ limit, cursor }: Page) {
    const isKnown = cursor === undefined || (/^[0-9a-f]{40,64}$/.test(cursor) && (await repo.has(cursor)));
    if (!isKnown) throw wrongCursor();
    return paged(await repo.commits(limit + 1, cursor), limit, ({ revision }) => revision);
  }

  /** The commits that the database has as the cause of a visible event. The cursor is a position. */
  async function some(of: Parameters<typeof changedRevisions>[1], { limit, cursor }: Page) {
    if (cursor !== undefined && !/^\d{1,18}$/.test(cursor)) throw wrongCursor();
    const rows = await changedRevisions(db, of, { limit: limit + 1, cursor });
    const { items, next } = paged(rows, limit, ({ position }) => position);
    return { items: await repo.commitsAt([...new Set(items.map(({ revision }) => revision))]), next };
  }

  async function shown(commits: readonly CommitEntry[], caller: Actor | undefined) {
    const ids = await containerIds(db, [...new Set(commits.flatMap(({ sites }) => sites))], caller);
    return commits.map(({ revision, at, author, subject, trailers, sites }) => ({
      commit: revision,
      at,
      author,
      subject,
      reason: trailers.Reason ?? null,
      requestId: trailers['Request-Id'] ?? null,
      sites: sites
        .filter((site) => caller === undefined || ids.has(site))
        .map((siteId) => ({ siteId, containerId: ids.get(siteId) ?? null })),
    }));
  }

  return async (app) => {
    app.get(
      '/changes',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'listChanges',
          summary: 'List the commits of the instance that the caller may see, the newest first',
          tags: ['instance'],
          querystring: changesQuery,
          response: {
            200: commitList,
            ...problems('invalid_request', 'unknown_client', 'sites_repo_unavailable'),
          },
        },
      },
      async (request) => {
        const { client, ...page } = request.query;
        const readsAll = isOperator({ settings }, callerOf(request));
        const caller = readsAll ? undefined : callerOf(request);
        if (client !== undefined && caller !== undefined) {
          await demandRole(db, client, caller.subject, 'read');
        }
        const { items, next } =
          readsAll && client === undefined ? await all(page) : await some({ caller, client }, page);
        return { items: await shown(items, caller), next };
      },
    );
  };
}
