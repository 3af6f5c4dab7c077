import { definePlugin } from '../contract.ts';
import { isHit } from '../hits.ts';
import { config } from './config.ts';

const BOOT = '/boot';

/** Tells the tag server whether a bot sends a hit, or refuses bots' bootstraps and hits. */
export default definePlugin({
  name: 'bot_guard',
  kind: 'optional',
  flag: 'bot_guard',
  config,
  routes: [],
  async before(request, context, { forwards }) {
    const url = new URL(request.url);
    const { action, threshold, except } = context.settings;
    const isBoot = url.pathname === BOOT && request.method === 'POST';
    if (!(forwards || isBoot) || except.includes(url.pathname)) return undefined;
    const score = context.botScore;
    const isBot = context.isBot || score > threshold;
    if (isBot && action === 'refuse' && (isBoot || isHit(request, url))) {
      context.count('refused');
      return new Response(null, { status: 204 });
    }
    if (!forwards) return undefined;
    if (isBot) context.count('marked');
    context.tellTagServer({ headers: { 'x-device-bot': `${isBot}`, 'x-device-bot-score': `${score}` } });
    return undefined;
  },
});
