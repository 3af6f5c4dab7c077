import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Context } from '../context/context.ts';
import { instanceChangesRoutes } from './changes.routes.ts';
import { endingRoutes } from './ending.routes.ts';
import { hostsRoutes } from './hosts.routes.ts';
import { plansRoutes } from './plans.routes.ts';
import { resourcesRoutes } from './resources.routes.ts';

/** What the provisioner and git know of the instance and of single containers. */
export function instanceRoutes(context: Context): FastifyPluginAsyncZod {
  return async (app) => {
    await app.register(hostsRoutes(context));
    await app.register(plansRoutes(context));
    await app.register(instanceChangesRoutes(context));
    await app.register(resourcesRoutes(context));
    await app.register(endingRoutes(context));
  };
}
