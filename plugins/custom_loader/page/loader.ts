import type { BootAnswer, TagyardPage } from './state.ts';

/** Not in all browsers. A policy makes objects that `src` accepts where a page's policy refuses text. */
declare const trustedTypes: {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): string };
};

/** What the snippet pushes to the data layer, among others. */
interface Entry {
  'gtm.start'?: number;
  event?: string;
}

/** A placeholder: rendering the script for a site replaces it by the site's values. */
declare const TAGYARD_VALUES: {
  edge: string;
  loader: string;
  cookies: string[];
  layer?: string;
  query?: string;
};

const values = TAGYARD_VALUES;
const page: TagyardPage = window.tagyard || {};
window.tagyard = page;
// A page that contains the loader twice boots once.
if (!page.booted) page.booted = boot();

async function boot(): Promise<BootAnswer | null> {
  const nonce = document.currentScript ? document.currentScript.nonce : '';
  page.edge = values.edge;
  page.loader = values.loader;
  if (!page.gtm) page.gtm = 'pending';
  const answer = await ask();
  // If the snippet's timeout has passed, the vendor's copy is already being loaded.
  const pending = page.gtm === 'pending';
  if (!answer) {
    if (pending) failed();
    return null;
  }
  page.session = answer.session;
  page.profile = answer.profile;
  page.restored = answer.restoreCookies.map((cookie) => cookie.name);
  keep(answer);
  if (pending) load(withPreview(answer.container.scriptUrl + (values.query || '')), nonce);
  return answer;
}

async function ask(): Promise<BootAnswer | null> {
  try {
    const session = stored();
    const response = await fetch(`${values.edge}/boot`, {
      method: 'POST',
      credentials: 'include',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        loader: values.loader,
        url: location.href,
        fpid: (/; _fpid=([0-9a-f]{32});/.exec(jar()) || [])[1],
        session: session ? { id: session } : undefined,
        consent: page.consent,
        cookies: restorable(),
      }),
    });
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

/** The page's cookies, each between `; ` and `;`. Empty in a sandbox that forbids access. */
function jar(): string {
  try {
    return `; ${document.cookie};`;
  } catch {
    return '';
  }
}

/** The page sends only the cookies that the site restores. */
function restorable(): Record<string, string> {
  const found: Record<string, string> = {};
  jar().replace(/; ([^=;]+)=([^;]*)/g, (_all, name: string, value: string) => {
    for (const pattern of values.cookies) {
      if (pattern === name || (pattern.endsWith('*') && name.startsWith(pattern.slice(0, -1))))
        found[name] = value;
    }
    return '';
  });
  return found;
}

function stored(): string | null {
  try {
    return localStorage.getItem('tagyard.session');
  } catch {
    return null;
  }
}

function write(name: string, value: string, maxAge: number, domain: string | null): void {
  // biome-ignore lint/suspicious/noDocumentCookie: CookieStore is absent from two of the three engines.
  document.cookie = `${name}=${value}; Path=/; Max-Age=${maxAge}; SameSite=Lax; Secure${domain ? `; Domain=${domain}` : ''}`;
}

/**
 * Sets the id on the widest domain that the browser accepts, or deletes the cookie if `id` is empty. Tries narrower
 * domains until the page's cookies have the id, or no id. A malformed id may remain beside it. (The edge uses the
 * public suffix list.)
 */
function keepId(id: string): void {
  const labels = location.hostname.split('.');
  const pair = `; _fpid=${id && `${id};`}`;
  for (let from = labels.length - 1; jar().includes(pair) === !id && from >= -1; from--) {
    write('_fpid', id, id ? 34560000 : 0, from < 0 ? null : labels.slice(from).join('.'));
  }
}

/** Writes only cookies that the answer's `Set-Cookie` could not set: Safari shortens the life of what a script writes. */
function keep(answer: BootAnswer): void {
  const present = jar();
  const id = answer.profile ? answer.profile.id : '';
  try {
    keepId(id);
    for (const cookie of answer.restoreCookies) {
      if (!present.includes(`; ${cookie.name}=`)) {
        write(cookie.name, cookie.value, cookie.maxAge, cookie.domain);
      }
    }
    // Storage comes last, because a browser may forbid only storage. A sandbox that forbids cookies forbids both.
    if (id) localStorage.setItem('tagyard.session', answer.session.id);
    else localStorage.removeItem('tagyard.session');
  } catch {}
}

/** Copies the tag manager's preview parameters from the page's URL. */
function withPreview(scriptUrl: string): string {
  const url = new URL(scriptUrl);
  new URLSearchParams(location.search).forEach((value, name) => {
    if (/^gtm_(auth|preview|cookies_win|debug)$/.test(name)) url.searchParams.set(name, value);
  });
  return url.href;
}

/** A script URL for pages with `require-trusted-types-for 'script'`. */
function trusted(src: string): string {
  try {
    return trustedTypes
      .createPolicy('tagyard-loader', { createScriptURL: (url) => url })
      .createScriptURL(src);
  } catch {
    // No trusted types, or the page does not allow this policy. A default policy may accept the text.
    return src;
  }
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
  script.src = trusted(src);
  if (nonce) script.nonce = nonce;
  script.onload = loaded;
  script.onerror = failed;
  document.head.appendChild(script);
}

function failed(): void {
  page.gtm = 'failed';
  if (page.direct) page.direct();
}
