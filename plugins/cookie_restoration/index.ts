import { definePlugin } from '../contract.ts';
import { config } from './config.ts';
import { mergeCookies, restored } from './cookies.ts';

/**
 * Keeps the listed cookies of a profile and gives them back when the browser has lost them. The store is keyed by
 * site and profile, so a guessed id opens nothing of another site.
 */
export default definePlugin({
  name: 'cookie_restoration',
  kind: 'optional',
  flag: 'cookie_restoration',
  config,
  routes: [],
  wantedCookies: ({ cookies }) => cookies,
  async boot(context, draft) {
    if (draft.record === null) return;
    const now = context.now();
    const cookies = mergeCookies(draft.record.cookies, draft.sentCookies, {
      patterns: context.settings.cookies,
      consent: draft.consent,
      now,
    });
    draft.record.cookies = cookies;
    draft.restoreCookies = cookies.map((cookie) => restored(cookie, draft.domain.cookieDomain, now));
  },
});
