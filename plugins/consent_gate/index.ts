import { choicesOfHit } from '../consent.ts';
import { definePlugin } from '../contract.ts';
import { isHit } from '../hits.ts';
import { changedHit } from '../parameters.ts';
import { config } from './config.ts';

/** What identifies a visitor in hits; docs/plugins/consent-gate.md has the same list. */
const IDENTIFYING =
  /^(?:cid|client_id|app_instance_id|uid|user_id|user_data|sid|session_id|sct|seg|_fid|ecid|auid|em|eme|uip|ip_override|gclid|gclgb|gclgs|gclaw|gac|dclid|gbraid|wbraid|fbclid|fbp|fbc|ttclid|msclkid)$/;
/** Addresses of pages, whose query may contain the same. */
const PAGE = /^(?:dl|dr|page_location|page_referrer)$/;

/** Keeps hits without consent from the tag server, or strips them of what identifies the visitor. */
export default definePlugin({
  name: 'consent_gate',
  kind: 'optional',
  flag: 'consent_gate',
  config,
  routes: [],
  failsClosed: true,
  async before(request, context, { forwards }) {
    const url = new URL(request.url);
    const { action, purpose, except } = context.settings;
    if (!forwards || except.includes(url.pathname) || !isHit(request, url)) return undefined;
    const { state, analytics } = context.consent(choicesOfHit(url.search));
    const isAllowed = {
      analytics,
      ads: state === 'ads' || state === 'all',
      any: state !== 'none',
    }[purpose];
    if (isAllowed) return undefined;
    if (action === 'drop') {
      context.count('dropped');
      return new Response(null, { status: 204 });
    }
    context.count('stripped');
    context.tellTagServer({ address: null });
    const headers = new Headers(request.headers);
    headers.delete('cookie');
    headers.delete('referer');
    return await changedHit(request, headers, (name, value) => {
      if (IDENTIFYING.test(name)) return null;
      return PAGE.test(name) ? value.replace(/[?#].*$/s, '') : value;
    });
  },
});
