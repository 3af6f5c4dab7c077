import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { problems } from '../http/openapi.ts';
import { pluginList, pluginsQuery } from './plugins.schema.ts';
import { describePlugins } from './plugins.ts';

/** The plugins that a container can use, with their options. */
export function pluginsRoutes(): FastifyPluginAsyncZod {
  const plugins = describePlugins();

  return async (app) => {
    app.get(
      '/plugins',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'listPlugins',
          summary: 'List the plugins with their options, from which forms are made',
          tags: ['plugins'],
          querystring: pluginsQuery,
          response: { 200: pluginList, ...problems('invalid_request') },
        },
      },
      async ({ query: { limit, cursor } }) => {
        const start = cursor === undefined ? 0 : plugins.findIndex(({ name }) => name === cursor) + 1;
        const items = plugins.slice(start, start + limit);
        const hasMore = start + items.length < plugins.length;
        return { items, next: hasMore ? (items.at(-1)?.name ?? null) : null };
      },
    );
  };
}
