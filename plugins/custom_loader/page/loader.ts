import { type Decision, listen } from './consent.ts';
import { jar, keepWide, pickCookies, writeCookie } from './jar.ts';
import { watchCookies } from './newer-cookies.ts';
import { trusted, withPreview } from './script-url.ts';
import type { BootAnswer, TagyardPage } from './state.ts';

/** Placeholders: rendering the script for a site and a visitor's place replaces them. */
declare const TAGYARD_VALUES: {
  edge: string;
  loader: string;
  cookies: string[];
  /** Those by which the edge finds what is kept. */
  keys?: string[];
  /** Of an id, in seconds. */
  life: number;
  /** Only a grant allows anything. */
  strict: boolean;
  /** Nothing loads before a grant. */
  basic: boolean;
  /** The page may load the vendor's script directly. */
  vendor: boolean;
  /** Days after which a consent counts as none. */
  days: number;
  /** Of the page's own snippet, which has started the data layer already. */
  layer?: string;
  /** Of the web tag's script, with `?`. */
  query?: string;
};
declare const TAGYARD_PLACE: string;

/** What the snippet pushes to the data layer, among others. */
interface Entry {
  'gtm.start'?: number;
  event?: string;
}

/** As long as the snippet waits for the edge. */
const EDGE_TIMEOUT_MS = 3000;
/** A cookie for the whole domain, so that the session continues on its other hosts. It ends with the browser. */
const SESSION = 'tagyard_session';

const values = TAGYARD_VALUES;
const page: TagyardPage = window.tagyard || {};
window.tagyard = page;
const nonce = document.currentScript ? document.currentScript.nonce : '';

/** The snippet's fallback is kept from running, by the snippet itself or by `hold`. */
let isHeld = page.tried === true && !page.gtm;
/** What the visitor's last choices were, as far as they change what is done. */
let followed = '';
let isFollowing = false;
/** The web tag may load: the site's rules and the visitor allow it. */
let mayLoad = false;
/** A bootstrap has been sent for the web tag. */
let hasBooted = false;
/** What this page view has restored. */
let restored: BootAnswer['restoreCookies'] = [];
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
    place: TAGYARD_PLACE,
    layer: values.layer || 'dataLayer',
  });
  const begin = () => {
    const timeout = heard.timeout();
    let isWaiting = timeout > 0;
    const go = () => {
      isWaiting = false;
      follow(heard.decide);
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
async function follow(decide: () => Decision): Promise<void> {
  if (isFollowing) return;
  isFollowing = true;
  for (;;) {
    const now = decide();
    const key = [now.analytics, now.ads, now.erase].join();
    if (key === followed) break;
    followed = key;
    await bootstrap(now);
  }
  isFollowing = false;
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
  const deletes = now.erase && (jar().includes('; _fpid=') || stored() !== null);
  if (!any && !deletes && (hasBooted || !loads)) return;
  page.choices = now.choices;
  const newerThan = watchCookies();
  const answer = await ask(now, any);
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
  // Before a choice, what is left of an earlier consent stays.
  if (any || now.erase) keep(answer, newerThan);
  if (now.analytics && answer.profile) resolveMeasured(answer);
  if (pending) load(withPreview(answer.container.scriptUrl + (values.query || '')), nonce);
}

/**
 * Without consent, only the loader's token and the page's origin are sent; to delete a profile, also its id and the cookie
 * that is its key. A simple request, whose body is text: a JSON type would cost a preflight.
 */
async function ask({ erase, choices }: Decision, any: boolean): Promise<BootAnswer | null> {
  try {
    const session = stored();
    const id = (/; _fpid=([0-9a-f]{32});/.exec(jar()) || [])[1];
    const sent = any ? values.cookies : erase && values.keys;
    const response = await fetch(`${values.edge}/boot`, {
      method: 'POST',
      credentials: sent ? 'include' : 'omit',
      referrerPolicy: 'no-referrer',
      // A page may be left as soon as the visitor has withdrawn.
      keepalive: erase,
      body: JSON.stringify({
        loader: values.loader,
        url: location.origin,
        fpid: any || erase ? id : undefined,
        session: any && session ? { id: session } : undefined,
        consent: any ? choices : { analytics_storage: 'denied', ad_storage: 'denied' },
        cookies: sent ? pickCookies(sent) : undefined,
      }),
    });
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

/** The session's token. Earlier loaders kept the session's id in the page's storage. */
function stored(): string | null {
  try {
    return (jar().match(`; ${SESSION}=([^;]+);`) || [])[1] || localStorage.getItem('tagyard.session');
  } catch {
    return null;
  }
}

/**
 * Writes only cookies that the answer's `Set-Cookie` could not set: Safari shortens the life of what a script writes. A
 * cookie that the page has by now stays as it is, or is put back where the answer has replaced it.
 */
function keep(answer: BootAnswer, newerThan: ReturnType<typeof watchCookies>): void {
  const present = jar();
  const id = answer.profile ? answer.profile.id : '';
  try {
    keepWide('_fpid', id, values.life);
    keepWide(SESSION, (id && answer.session.token) || '', null);
    for (const cookie of answer.restoreCookies) {
      const { name, value, maxAge, domain } = cookie;
      const newer = newerThan(cookie);
      if (!present.includes(`; ${name}=`)) writeCookie(name, value, maxAge, domain);
      else if (newer && present.includes(`; ${name}=${value};`)) writeCookie(name, newer, maxAge, domain);
    }
    if (!id) for (const { name, domain } of restored) writeCookie(name, '', 0, domain);
    restored = id ? restored.concat(answer.restoreCookies) : [];
    // Storage comes last, because a browser may forbid only storage. A sandbox that forbids cookies forbids both.
    localStorage.removeItem('tagyard.session');
  } catch {}
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
