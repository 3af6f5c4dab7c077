import { type BootDraft, definePlugin, type PluginContext } from '../contract.ts';
import { config } from './config.ts';
import { mergeCookies, restored } from './cookies.ts';
import { setCookieLine } from './http-cookies.ts';
import { countBrowser, type MasterUse, masterKey, masterValue } from './master-cookie.ts';
import { keepPassed } from './passed.ts';

/** What the record may be used for: everything, if its key is the visitor's own id. */
function useOf({ isDerivedKey, record, id }: BootDraft, context: PluginContext): MasterUse {
  if (!isDerivedKey || record === null || id === null) return 'restore';
  const use = countBrowser(record, id, context.now());
  if (use === 'refuse') {
    Object.assign(record, { cookies: [], browsers: [], isShared: true });
    context.report('master_cookie_shared');
  }
  return use;
}

/**
 * Stores the listed cookies of a profile and restores those that the browser has lost. The store is keyed by site and by
 * profile or master cookie, so an id of one site can't read another site's cookies.
 */
export default definePlugin({
  name: 'cookie_restoration',
  kind: 'optional',
  flag: 'cookie_restoration',
  config,
  keeps: true,
  routes: [],
  wantedCookies: ({ cookies, masterCookie }) =>
    masterCookie === undefined ? cookies : [...cookies, masterCookie],
  bootMember: 'restoreCookies',
  keyCookies: ({ masterCookie }) => (masterCookie === undefined ? [] : [masterCookie]),
  async profileKey(cookies, { settings, site }) {
    const { masterCookie } = settings;
    const value = masterCookie === undefined ? undefined : masterValue(masterCookie, cookies);
    return value === undefined ? undefined : await masterKey(site.siteId, value);
  },
  boot(context, draft) {
    const { record, endsAt, presentCookies } = draft;
    if (record === null) return undefined;
    const { cookies: patterns, masterCookie } = context.settings;
    const now = context.now();
    const { [masterCookie ?? '']: _, ...sent } = draft.sentCookies;
    const use = useOf(draft, context);
    if (use === 'refuse') return [];
    record.cookies = mergeCookies(record.cookies, sent, { patterns, consent: draft.consent, now, endsAt });
    if (use === 'store') return [];
    // Only cookies that the request lacks: a newer value in the browser must not be overwritten.
    const missing = record.cookies.filter(({ name }) => !presentCookies.has(name));
    const hidden = missing.filter(({ attributes }) => attributes !== undefined);
    draft.setCookies.push(...hidden.map((cookie) => setCookieLine(cookie, now)));
    return missing
      .filter(({ attributes }) => attributes === undefined)
      .map((cookie) => restored(cookie, draft.domain.cookieDomain, now));
  },
  passedCookies: (lines, request, context) => keepPassed(lines, request, context),
});
