import { definePlugin } from '../contract.ts';
import { config } from './config.ts';

/**
 * Gives each domain of a site its own web tag, container token, cookie domain and CORS. Without it, only the primary
 * domain boots, and only the primary domain's container token resolves.
 */
export default definePlugin({
  name: 'multi_domain',
  kind: 'optional',
  flag: 'multi_domain',
  config,
  routes: [],
  domains: (all) => all,
});
