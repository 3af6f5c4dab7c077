import { definePlugin } from '../contract.ts';
import { isHit } from '../hits.ts';
import { config } from './config.ts';
import { rangeMatcher } from './ranges.ts';

const BOOT = '/boot';

/** Matchers by settings, which live as long as the site's documents. */
const matchers = new WeakMap<object, ReturnType<typeof rangeMatcher>>();

/** Refuses the bootstraps and hits of visitors in listed ranges. */
export default definePlugin({
  name: 'block_addresses',
  kind: 'optional',
  flag: 'block_addresses',
  config,
  routes: [],
  async before(request, { settings, visitor, count }, { forwards }) {
    const url = new URL(request.url);
    const isBoot = url.pathname === BOOT && request.method === 'POST';
    if (!isBoot && !(forwards && isHit(request, url))) return undefined;
    const { address, isTrusted } = visitor;
    // An address that no hop proves may be that of a server in between.
    if (address === null || !isTrusted) return undefined;
    const matches = matchers.get(settings) ?? rangeMatcher(settings.ranges);
    matchers.set(settings, matches);
    if (!matches(address)) return undefined;
    count('refused');
    return new Response(null, { status: 204 });
  },
});
