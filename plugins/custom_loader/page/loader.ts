import { type Decision, listen } from './consent.ts';
import { drop, jar, keepWide, store, writeCookie } from './jar.ts';
import { watchCookies } from './newer-cookies.ts';
import { idOf, SESSION, sendBootstrap, session, UNMEASURED } from './request.ts';
import { trusted, withPreview } from './script-url.ts';
import type { BootAnswer, TagyardPage } from './state.ts';
import { place, values } from './values.ts';
import { deleteRefused, forgotten, remember, toForget } from './withdrawal.ts';

/** What the snippet pushes to the data layer, among others. */
interface Entry {
  'gtm.start'?: number;
  event?: string;
}

/** As long as the snippet waits for the edge. */
const EDGE_TIMEOUT_MS = 3000;

const page: TagyardPage = window.tagyard || {};
window.tagyard = page;
const nonce = document.currentScript ? document.currentScript.nonce : '';

/** The snippet's fallback is kept from running, by the snippet itself or by `hold`. */
let isHeld = page.tried === true && !page.gtm;
/** What the visitor's last choices were, as far as they change what is done. */
let followed = '';
/** Milliseconds until a withdrawal that the edge hasn't heard is sent again. */
let retryAfter = 5000;
let retrying: ReturnType<typeof setTimeout> | undefined;
let isFollowing = false;
let decide: () => Decision;
/** The web tag may load: the site's rules and the visitor allow it. */
let mayLoad = false;
/** A bootstrap has been sent for the web tag. */
let hasBooted = false;
let resolveBooted: (answer: BootAnswer | null) => void;
let resolveMeasured: (answer: BootAnswer) => void;

// A page that contains the loader twice boots once.
if (!page.booted) start();

function start(): void {
  page.edge = values.edge;
  page.loader = values.loader;
  page.booted = new Promise((resolve) => {
    resolveBooted = resolve;
  });
  page.measured = new Promise((resolve) => {
    resolveMeasured = resolve;
  });
  if (!values.vendor) hold();
  const heard = listen(page, {
    strict: values.strict,
    maxAge: values.days * 86400000,
    place,
    layer: values.layer || 'dataLayer',
  });
  decide = heard.decide;
  const begin = () => {
    const timeout = heard.timeout();
    let isWaiting = timeout > 0;
    const go = () => {
      isWaiting = false;
      follow();
    };
    heard.onChange(() => {
      if (!isWaiting || !heard.timeout()) go();
    });
    if (isWaiting) {
      wait();
      setTimeout(go, timeout);
    } else go();
  };
  if ((document as { prerendering?: boolean }).prerendering) {
    // The page may never be shown.
    wait();
    document.addEventListener('prerenderingchange', begin, { once: true });
  } else begin();
}

/** Keeps the snippet's fallback from running. */
function hold(): void {
  if (!page.tried) page.tried = isHeld = true;
}

function wait(): void {
  if (page.gtm && page.gtm !== 'pending') return;
  page.gtm = 'waiting';
  hold();
}

/** Does what the visitor's choices ask for, one bootstrap after the other, until they no longer change. */
async function follow(): Promise<void> {
  if (isFollowing) return clear(decide());
  isFollowing = true;
  for (;;) {
    const now = decide();
    const { choices, analytics, ads, erase, refuses } = now;
    clear(now);
    page.choices = choices;
    const isRefused = refuses.analytics || refuses.ads;
    const uses = (analytics || ads) && [isRefused, choices.ad_user_data, choices.ad_personalization];
    const key = [analytics, ads, erase, uses].join();
    if (key === followed) break;
    followed = key;
    try {
      await bootstrap(now);
    } catch {
      // An answer of another form. Later choices must still be heard.
      if (page.gtm === 'pending') failed();
    }
  }
  isFollowing = false;
}

/** Deletes at once what the visitor refuses. The edge's answer may be late, or may never come. */
function clear({ erase, refuses }: Decision): void {
  deleteRefused(values.cookies, values.keys, refuses);
  if (!erase) return;
  const id = idOf();
  if (id) remember(id);
  drop(['_fpid', SESSION].concat(page.restored || []));
  store('tagyard.session', '');
}

/** Without a purpose to act for, and with nothing to delete, no request is sent for a web tag that is not to load. */
async function bootstrap(now: Decision): Promise<void> {
  const any = now.analytics || now.ads;
  mayLoad = any || !values.basic;
  const loads = mayLoad;
  if (!loads) wait();
  if (loads && (!page.gtm || page.gtm === 'waiting')) {
    page.gtm = 'pending';
    if (isHeld) setTimeout(fallBack, EDGE_TIMEOUT_MS);
  }
  // A cookie that scripts don't see may be the key of what is kept.
  if (now.erase && values.keys) remember();
  const old = toForget();
  if (!any && !old && (hasBooted || !loads)) return;
  const newerThan = watchCookies();
  let answer: BootAnswer | null = null;
  if (old) {
    answer = await sendBootstrap(now, old);
    if (answer) forgotten();
    else retry();
  }
  // What is to be forgotten must be before anything new is kept.
  if (any ? answer || !old : !old) answer = await sendBootstrap(now);
  const isWithdrawn = decide().erase;
  if (any && isWithdrawn) {
    // While the request was under way. The next bootstrap deletes what this one has begun.
    if (answer?.profile) remember(answer.profile.id);
    return;
  }
  if (loads) {
    if (hasBooted) page.booted = Promise.resolve(answer);
    hasBooted = true;
    resolveBooted(answer);
  }
  // If the snippet's timeout has passed, the vendor's copy is already being loaded.
  const pending = page.gtm === 'pending';
  if (!answer) {
    if (pending) failed();
    return;
  }
  page.session = answer.session;
  page.profile = answer.profile;
  page.restored = answer.restoreCookies.map((cookie) => cookie.name);
  drop(answer.deleteCookies);
  // Before a choice, what is left of an earlier consent stays.
  if (any) {
    const isUnmeasured = answer.session.isNew || session().endsWith(UNMEASURED);
    const isMeasured = now.analytics && answer.profile;
    keep(answer, newerThan, isUnmeasured && !isMeasured ? UNMEASURED : '');
    if (isUnmeasured && isMeasured) resolveMeasured(answer);
  }
  if (pending) load(withPreview(answer.container.scriptUrl + (values.query || '')), nonce);
}

/** Tells the edge of the withdrawal again, later and later; the next page does, too. */
function retry(): void {
  clearTimeout(retrying);
  retrying = setTimeout(() => {
    followed = '';
    follow();
  }, retryAfter);
  retryAfter *= 2;
}

/**
 * Writes only cookies that the answer's `Set-Cookie` could not set: Safari shortens the life of what a script writes. A
 * cookie that the page has by now stays as it is, or is put back where the answer has replaced it.
 */
function keep(answer: BootAnswer, newerThan: ReturnType<typeof watchCookies>, mark: string): void {
  const present = jar();
  const id = answer.profile ? answer.profile.id : '';
  try {
    keepWide('_fpid', id, values.life);
    keepWide(SESSION, (id && answer.session.token && answer.session.token + mark) || '', null);
    for (const cookie of answer.restoreCookies) {
      const { name, value, maxAge, domain } = cookie;
      const newer = newerThan(cookie);
      if (!present.includes(`; ${name}=`)) writeCookie(name, value, maxAge, domain);
      else if (newer && present.includes(`; ${name}=${value};`)) writeCookie(name, newer, maxAge, domain);
    }
  } catch {}
  store('tagyard.session', '');
}

function load(src: string, nonce: string | undefined): void {
  page.gtm = 'edge';
  const layers = window as unknown as Record<string, Entry[] | undefined>;
  const name = values.layer || 'dataLayer';
  const layer = layers[name] || [];
  layers[name] = layer;
  // A snippet of a shop's own plugin, which names the layer, has pushed it.
  if (!page.started && !(values.layer && layer.some((entry) => entry?.['gtm.start']))) {
    layer.push({ 'gtm.start': Date.now(), event: 'gtm.js' });
  }
  page.started = true;
  const loaded = () => {
    page.gtm = 'loaded';
  };
  if (page.add) {
    page.add(src, loaded, failed);
    return;
  }
  // Asynchronous by default, because a script creates it.
  const script = document.createElement('script');
  script.referrerPolicy = 'no-referrer';
  script.crossOrigin = 'anonymous';
  script.src = trusted(src);
  if (nonce) script.nonce = nonce;
  script.onload = loaded;
  script.onerror = failed;
  document.head.appendChild(script);
}

function failed(): void {
  page.gtm = 'failed';
  fallBack();
}

/** Loads the vendor's script directly, if the site's rules and the visitor allow it and nothing has loaded it. */
function fallBack(): void {
  if (!mayLoad || !values.vendor) return;
  if (isHeld) page.tried = isHeld = false;
  if (page.direct) page.direct();
}
