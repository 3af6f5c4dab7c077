import type { Decision } from './consent.ts';
import { jar, pickCookies, stored } from './jar.ts';
import type { BootAnswer } from './state.ts';
import { values } from './values.ts';

/** A cookie for the whole domain, so that the session continues on its other hosts. */
export const SESSION = 'tagyard_session';
/**
 * Seconds without a bootstrap after which a session ends. The cookie lives that long, also if the browser is closed in
 * between.
 */
export const SESSION_LIFE = 1800;
/** If the edge hasn't answered after this time, the request counts as failed, so that later choices are acted on. */
const ANSWER_TIMEOUT_MS = 30000;
/** A mark at the end of a session's token: no bootstrap of the session has been allowed analytics yet. */
export const UNMEASURED = '-';

/**
 * Without consent, only the loader's token, the page's origin and the denial are sent. With `old`, the request asks the
 * edge to forget a visitor. It then has the id and the cookies under which data is kept. If plugins use any cookies,
 * it is sent with credentials, because only the answer can delete those that scripts don't see. It is always a simple
 * request with a text body: a JSON content type would cost a preflight.
 */
export async function sendBootstrap(
  { analytics, ads, choices, refuses }: Decision,
  old?: string,
): Promise<BootAnswer | null> {
  try {
    const mayIdentify = !old && (analytics || ads);
    const token = session().replace(UNMEASURED, '');
    const sent = mayIdentify ? values.cookies : old && values.keys;
    const response = await fetch(`${values.edge}/boot`, {
      method: 'POST',
      credentials: mayIdentify || (old && (values.keys || values.cookies[0])) ? 'include' : 'omit',
      referrerPolicy: 'no-referrer',
      // The page may be closed right after the withdrawal.
      keepalive: !!old,
      // Some browsers lack `AbortSignal.timeout`.
      signal: AbortSignal.timeout?.(ANSWER_TIMEOUT_MS),
      body: JSON.stringify({
        loader: values.loader,
        url: location.origin,
        fpid: mayIdentify ? idOf() : old,
        session: mayIdentify && token ? { id: token } : undefined,
        consent: mayIdentify ? choices : { analytics_storage: 'denied', ad_storage: 'denied' },
        cookies: sent ? pickCookies(sent) : undefined,
        withdrawn: (mayIdentify && (refuses.analytics || refuses.ads)) || undefined,
      }),
    });
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

/** The id, if the page's cookies have a well-formed one. */
export const idOf = () => (/; _fpid=([0-9a-f]{32});/.exec(jar()) || [])[1];

/** The session's token, or nothing. Earlier loaders kept the session's id in the page's storage. */
export const session = () => (jar().match(`; ${SESSION}=([^;]+);`) || [])[1] || stored('tagyard.session');
