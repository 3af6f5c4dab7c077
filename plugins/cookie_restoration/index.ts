import { definePlugin } from '../contract.ts';
import { config } from './config.ts';
import { mergeCookies, restored } from './cookies.ts';

/**
 * Stores the listed cookies of a profile and restores them when the browser has lost them. The store is keyed by site
 * and profile, so an id of one site can't read another site's cookies.
 */
export default definePlugin({
  name: 'cookie_restoration',
  kind: 'optional',
  flag: 'cookie_restoration',
  config,
  routes: [],
  wantedCookies: ({ cookies }) => cookies,
  bootMember: 'restoreCookies',
  async boot(context, draft) {
    if (draft.record === null) return undefined;
    const now = context.now();
    const cookies = mergeCookies(draft.record.cookies, draft.sentCookies, {
      patterns: context.settings.cookies,
      consent: draft.consent,
      now,
    });
    draft.record.cookies = cookies;
    return cookies.map((cookie) => restored(cookie, draft.domain.cookieDomain, now));
  },
});
