import { definePlugin } from '../contract.ts';
import { config } from './config.ts';

/**
 * Each domain of a site with its own web tag, container token, cookie domain and CORS. Off, only the primary domain
 * boots and only its container token resolves.
 */
export default definePlugin({
  name: 'multi_domain',
  kind: 'optional',
  flag: 'multi_domain',
  config,
  routes: [],
  domains: (all) => all.filter(({ active }) => active),
});
