import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { sql } from 'kysely';
import { z } from 'zod';
import type { Context } from '../context/context.ts';
import { problems } from '../http/openapi.ts';
import { LIVE } from '../lifecycle/status.ts';

const imageList = z
  .object({
    ofNewSites: z.string().meta({ description: 'TAG_SERVER_IMAGE' }),
    repositories: z.array(z.string()).meta({
      description:
        'IMAGE_REPOSITORIES: the repositories that images may come from; `local`: images with only an id',
    }),
    items: z
      .array(z.object({ image: z.string(), sites: z.int() }))
      .meta({ description: 'the images of live sites, the most used ones first' }),
  })
  .meta({ id: 'Images' });

/**
 * The images that sites have, and those that they may get. Registered among the routes of rollouts, which demand an
 * operator.
 */
export function imagesRoutes({ db, settings }: Context): FastifyPluginAsyncZod {
  return async (app) => {
    app.get(
      '/images',
      {
        config: { access: 'operate' },
        schema: {
          operationId: 'listImages',
          summary: 'List the images of live sites, and the repositories that images may come from',
          tags: ['instance'],
          response: { 200: imageList, ...problems('forbidden') },
        },
      },
      async () => {
        const rows = await db
          .selectFrom('containers')
          .select([sql<string>`manifest->>'image'`.as('image'), sql<number>`count(*)::int`.as('sites')])
          .where('status', 'in', LIVE)
          .groupBy('image')
          .orderBy('sites', 'desc')
          .orderBy('image')
          .execute();
        return { ofNewSites: settings.image, repositories: [...settings.imageRepositories], items: rows };
      },
    );
  };
}
