import * as z from 'zod/mini';
import { definePlugin } from '../contract.ts';

/**
 * Gives each domain of a site its own web tag, container token, cookie domain and CORS. Without it, only the primary
 * domain boots, and only the primary domain's container token resolves.
 */
export default definePlugin({
  name: 'multi_domain',
  kind: 'optional',
  flag: 'multi_domain',
  config: z.looseObject({}),
  routes: [],
  domains: (all) => all,
});
