import { definePlugin } from '../contract.ts';
import { config } from './config.ts';

/**
 * Gives each domain of a site its own web tag, container token, cookie domain and CORS. Without it, the edge answers
 * `/boot` and container tokens for the primary domain only.
 */
export default definePlugin({
  name: 'multi_domain',
  kind: 'optional',
  flag: 'multi_domain',
  config,
  routes: [],
  domains: (all) => all,
});
