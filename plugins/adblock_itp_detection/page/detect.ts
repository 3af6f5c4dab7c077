import { endsSoon, scriptCookiesCapped } from './cookie-age.ts';

/** What this part reads of `window.tagyard`; the loader, which runs just before, fills it in. */
interface LoaderState {
  readonly gtm?: string;
  readonly edge?: string;
  readonly loader?: string;
  readonly booted?: Promise<BootAnswer | null>;
  /** As the page set it, by Google's names. */
  readonly consent?: Record<string, string>;
  /** Set here: a page that carries the loader twice reports once. */
  marked?: boolean;
}

interface BootAnswer {
  readonly container: { readonly scriptUrl: string; readonly webTagId: string };
  readonly session: { readonly id: string };
  /** Null where nothing may be identified: then nothing is written either. */
  readonly profile: object | null;
}

const page = window as unknown as { tagyard?: LoaderState; google_tag_manager?: Record<string, unknown> };
const state: LoaderState = page.tagyard || {};

/** How long to wait for the web tag before what became of it counts as unknown, in milliseconds. */
const PATIENCE = 5000;

/** An address that the two common lists know by what stands in it, on the site's own edge: no stranger hears of it. */
const BAIT = '/bait/gtm.js?v=1&ad_type=banner';

/** Hides what the common lists hide: an element whose classes name an advertisement. */
function baitHidden(): boolean {
  const bait = document.createElement('div');
  bait.className = 'adsbox ad-banner textads banner_ads';
  bait.style.cssText = 'position:absolute;height:1px';
  // Not the body: the page's own scripts can hold it up for longer than the web tag takes.
  document.documentElement.appendChild(bait);
  const hidden = bait.offsetHeight === 0;
  bait.remove();
  return hidden;
}

/** Whether the browser won't even ask. The bootstrap came from the same host a moment ago, so the network is not it. */
function refused(url: string): Promise<boolean> {
  return fetch(url, { mode: 'no-cors' }).then(
    () => false,
    () => true,
  );
}

function settled(since: number): Promise<void> {
  if (state.gtm === 'loaded' || state.gtm === 'failed' || Date.now() - since > PATIENCE)
    return Promise.resolve();
  return new Promise((resolve) => setTimeout(() => resolve(settled(since)), 100));
}

/** What can't be known is left out: JSON has no `undefined`. */
async function signals({ container, profile }: BootAnswer) {
  const bait_hidden = baitHidden();
  const bait_blocked = await refused(state.edge + BAIT);
  // A blocker's stand-in runs and fires `load`, but registers no container.
  const tag_stubbed = state.gtm === 'loaded' && !page.google_tag_manager?.[container.webTagId];
  // A web tag that failed tells nothing by itself: an outage looks the same. Whether it can be asked for does.
  const tag_blocked = state.gtm === 'failed' && (await refused(container.scriptUrl));
  return {
    adblock: bait_hidden || bait_blocked || tag_stubbed || tag_blocked,
    bait_hidden,
    bait_blocked,
    tag_stubbed,
    tag_blocked,
    ...(await scriptCookiesCapped(profile !== null)),
    // As it stands, whoever set it: a cloaked edge's own `Set-Cookie` is shortened, too.
    id_capped: await endsSoon('_fpid'),
  };
}

async function report(): Promise<void> {
  const answer = await state.booted;
  if (!answer) return;
  await settled(Date.now());
  await fetch(`${state.edge}/mark-session-detection`, {
    method: 'POST',
    credentials: 'include',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      loader: state.loader,
      session: { id: answer.session.id },
      signals: await signals(answer),
      consent: state.consent,
    }),
  });
}

// What can't be reported is not reported; the page never hears of it.
if (state.booted && !state.marked) {
  state.marked = true;
  report().catch(() => undefined);
}
