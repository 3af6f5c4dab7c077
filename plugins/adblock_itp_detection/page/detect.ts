import { endsSoon, scriptCookiesCapped } from './cookie-age.ts';

/** The members of `window.tagyard` that this script reads. The loader, which runs before it, sets them. */
interface LoaderState {
  readonly gtm?: string;
  readonly edge?: string;
  readonly loader?: string;
  /** Resolves to the session's first answer after analytics was allowed; never on later pages, which report nothing. */
  readonly measured?: Promise<BootAnswer>;
  /** Null after a withdrawal. */
  readonly profile?: object | null;
  /** The visitor's choices, by Google's names. */
  readonly choices?: Record<string, string>;
  /** Set by this script: a page that contains the loader twice reports once. */
  marked?: boolean;
}

interface BootAnswer {
  readonly container: { readonly scriptUrl: string; readonly webTagId: string };
  readonly session: { readonly id: string };
}

const page = window as unknown as { tagyard?: LoaderState; google_tag_manager?: Record<string, unknown> };
const state: LoaderState = page.tagyard || {};

/** How long to wait for the web tag to load or fail. */
const TAG_TIMEOUT_MS = 5000;

/**
 * A query that the two common blocking lists match. The report itself has it, so that a page without a blocker sends
 * only one request. If that request is refused, the report is sent again without the query. The query ends with the
 * path, for filters and logs that match the end of a URL.
 */
const BAIT = '?bait=/bait/gtm.js?v=1&ad_type=banner&to=/mark-session-detection';

/**
 * Whether an element with the class names of an advertisement is hidden: the common blocking lists hide such elements.
 */
function baitHidden(): boolean {
  const bait = document.createElement('div');
  bait.className = 'adsbox ad-banner textads banner_ads';
  bait.style.cssText = 'position:absolute;height:1px';
  // Added to the root element: the body may not exist yet, because the page's own scripts can delay it.
  document.documentElement.appendChild(bait);
  const hidden = bait.offsetHeight === 0;
  bait.remove();
  return hidden;
}

/** Whether the browser blocks the request. A network failure is unlikely: the bootstrap came from the same host. */
function refused(url: string): Promise<boolean> {
  return fetch(url, { mode: 'no-cors' }).then(
    () => false,
    () => true,
  );
}

function settled(since: number): Promise<void> {
  if (state.gtm === 'loaded' || state.gtm === 'failed' || Date.now() - since > TAG_TIMEOUT_MS)
    return Promise.resolve();
  return new Promise((resolve) => setTimeout(() => resolve(settled(since)), 100));
}

/**
 * All signals except `bait_blocked`, which the report itself finds out. Unknown ones are undefined, so JSON omits them.
 */
async function signals({ container }: BootAnswer) {
  const bait_hidden = baitHidden();
  // A blocker's substitute script loads, but registers no container.
  const tag_stubbed = state.gtm === 'loaded' && !page.google_tag_manager?.[container.webTagId];
  // A web tag that failed to load can mean a blocker or an outage. Only a blocker also refuses a plain request for it.
  const tag_blocked = state.gtm === 'failed' && (await refused(container.scriptUrl));
  return {
    adblock: bait_hidden || tag_stubbed || tag_blocked,
    bait_hidden,
    tag_stubbed,
    tag_blocked,
    ...(await scriptCookiesCapped()),
    // The id's actual expiry: Safari also shortens a `Set-Cookie` of an edge that counts as cloaked.
    id_capped: await endsSoon('_fpid'),
  };
}

async function report(): Promise<void> {
  const answer = await state.measured;
  if (!answer) return;
  await settled(Date.now());
  // The visitor may have withdrawn consent since.
  if (!state.profile) return;
  const found = await signals(answer);
  const { session } = answer;
  await send(session.id, BAIT, { ...found, bait_blocked: false }).catch(() =>
    send(session.id, '', { ...found, bait_blocked: true, adblock: true }),
  );
}

/** Sends a simple request with a text body: a JSON content type would cost a preflight. */
function send(id: string, query: string, found: object): Promise<unknown> {
  return fetch(`${state.edge}/mark-session-detection${query}`, {
    method: 'POST',
    credentials: 'include',
    body: JSON.stringify({ loader: state.loader, session: { id }, signals: found, consent: state.choices }),
  });
}

// A failing report must not cause an error on the page.
if (state.measured && !state.marked) {
  state.marked = true;
  report().catch(() => undefined);
}
