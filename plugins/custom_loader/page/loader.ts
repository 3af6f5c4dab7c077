import { type Decision, listen } from './consent.ts';
import { drop, jar, keepWide, store, writeCookie } from './jar.ts';
import { watchCookies } from './newer-cookies.ts';
import { idOf, SESSION, SESSION_LIFE, sendBootstrap, session, UNMEASURED } from './request.ts';
import { trusted, withPreview } from './script-url.ts';
import type { BootAnswer, TagyardPage } from './state.ts';
import { place, values } from './values.ts';
import { deleteRefused, forgotten, remember, toForget } from './withdrawal.ts';

/** What the snippet pushes to the data layer, among others. */
interface Entry {
  'gtm.start'?: number;
  event?: string;
}

/** The snippet waits for the edge for the same time. */
const EDGE_TIMEOUT_MS = 3000;

const page: TagyardPage = window.tagyard || {};
window.tagyard = page;
const nonce = document.currentScript ? document.currentScript.nonce : '';

/** True while the snippet itself or `hold` prevents the snippet's fallback from running. */
let isHeld = page.tried === true && !page.gtm;
/** The visitor's choices that the loader last acted on, reduced to what changes its behaviour. */
let followed = '';
/** The pause before a withdrawal that the edge hasn't received is sent again, in milliseconds. */
let retryAfter = 5000;
let retrying: ReturnType<typeof setTimeout> | undefined;
let isFollowing = false;
let decide: () => Decision;
/** True if the site's rules and the visitor allow the web tag to load. */
let mayLoad = false;
/** True once a bootstrap has been sent for the web tag. */
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
    // A prerendered page may never be shown.
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

/** Acts on the visitor's choices, with one bootstrap after the other, until they no longer change. */
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
      // The answer has an unexpected form. Later choices must still be followed.
      if (page.gtm === 'pending') failed();
    }
  }
  isFollowing = false;
}

/** Deletes at once the cookies that the visitor refuses, because the edge's answer may be late or never come. */
function clear({ erase, refuses }: Decision): void {
  deleteRefused(values.cookies, values.keys, refuses);
  if (!erase) return;
  const id = idOf();
  if (id) remember(id);
  drop(['_fpid', SESSION].concat(page.restored || []));
  store('tagyard.session', '');
}

/**
 * Sends no request if no purpose is allowed, nothing is to be deleted at the edge, and the web tag either may not load
 * or already has its bootstrap.
 */
async function bootstrap(now: Decision): Promise<void> {
  const mayIdentify = now.analytics || now.ads;
  mayLoad = mayIdentify || !values.basic;
  const loads = mayLoad;
  if (!loads) wait();
  if (loads && (!page.gtm || page.gtm === 'waiting')) {
    page.gtm = 'pending';
    if (isHeld) setTimeout(fallBack, EDGE_TIMEOUT_MS);
  }
  // Needed even without an id: the edge may keep data under the value of a cookie that scripts can't read.
  if (now.erase && values.keys) remember();
  const old = toForget();
  if (!mayIdentify && !old && (hasBooted || !loads)) return;
  const newerThan = watchCookies();
  let answer: BootAnswer | null = null;
  if (old) {
    answer = await sendBootstrap(now, old);
    if (answer) forgotten();
    else retry();
  }
  // The edge must delete the old data before it stores anything new.
  if (mayIdentify ? answer || !old : !old) answer = await sendBootstrap(now);
  const isWithdrawn = decide().erase;
  if (mayIdentify && isWithdrawn) {
    // The visitor withdrew consent while the request was under way. The next bootstrap deletes the profile that this
    // one made.
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
  // If no purpose is allowed yet, the answer has no profile: `keep` would delete the cookies of an earlier
  // consent.
  if (mayIdentify) {
    const isUnmeasured = answer.session.isNew || session().endsWith(UNMEASURED);
    const isMeasured = now.analytics && answer.profile;
    keep(answer, newerThan, isUnmeasured && !isMeasured ? UNMEASURED : '');
    if (isUnmeasured && isMeasured) resolveMeasured(answer);
  }
  if (pending) load(withPreview(answer.container.scriptUrl + (values.query || '')), nonce);
}

/** Sends the withdrawal to the edge again, after a pause that doubles each time. The next page sends it, too. */
function retry(): void {
  clearTimeout(retrying);
  retrying = setTimeout(() => {
    followed = '';
    follow();
  }, retryAfter);
  retryAfter *= 2;
}

/**
 * Writes only cookies that the answer's `Set-Cookie` could not set, because Safari shortens the lifetime of cookies
 * that scripts write. A cookie that the page already has is kept. If the answer has replaced a newer value, that value
 * is written back.
 */
function keep(answer: BootAnswer, newerThan: ReturnType<typeof watchCookies>, mark: string): void {
  const present = jar();
  const id = answer.profile ? answer.profile.id : '';
  try {
    keepWide('_fpid', id, values.life);
    keepWide(SESSION, (id && answer.session.token && answer.session.token + mark) || '', SESSION_LIFE);
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
  // If another snippet (such as a shop plugin's) requested this script, it has already pushed `gtm.start` to its data
  // layer.
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
