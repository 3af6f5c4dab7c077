import { choicesOfHit } from '../consent.ts';
import { definePlugin } from '../contract.ts';
import { config } from './config.ts';

const ID_COOKIE = /(?:^|;\s*)_fpid=([0-9a-f]{32})(?:;|$)/;

/** Tells the tag server an id that is made from the visitor's own, if the hit states consent to analytics. */
export default definePlugin({
  name: 'user_id',
  kind: 'optional',
  flag: 'user_id',
  config,
  routes: [],
  async before(request, context, { forwards }) {
    const [, id] = forwards ? (ID_COOKIE.exec(request.headers.get('cookie') ?? '') ?? []) : [];
    if (id === undefined || context.isBot) return undefined;
    if (!context.consent(choicesOfHit(context.search)).analytics) {
      context.count('without_consent');
      return undefined;
    }
    context.tellTagServer({ headers: { [context.settings.header]: await context.sign(id) } });
    context.count('told');
    return undefined;
  },
});
