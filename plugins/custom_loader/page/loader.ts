import { watchCookies } from './newer-cookies.ts';
import type { BootAnswer, TagyardPage } from './state.ts';

/** Not in all browsers. A policy makes objects that `src` accepts where a page's policy refuses text. */
declare const trustedTypes: {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): string };
};

/** A placeholder: rendering the script for a site replaces it by the site's values. */
declare const TAGYARD_VALUES: { edge: string; loader: string; cookies: string[]; life: number };

/** A cookie for the whole domain, so that the session continues on its other hosts. It ends with the browser. */
const SESSION = 'tagyard_session';

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
  const newerThan = watchCookies();
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
  keep(answer, newerThan);
  if (pending) load(withPreview(answer.container.scriptUrl), nonce);
  return answer;
}

/** A simple request, whose body is text: a JSON type would cost a preflight. */
async function ask(): Promise<BootAnswer | null> {
  try {
    const session = stored();
    const response = await fetch(`${values.edge}/boot`, {
      method: 'POST',
      credentials: 'include',
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

/** The session's token. Earlier loaders kept the session's id in the page's storage. */
function stored(): string | null {
  try {
    return (jar().match(`; ${SESSION}=([^;]+);`) || [])[1] || localStorage.getItem('tagyard.session');
  } catch {
    return null;
  }
}

/** Without `maxAge`, the cookie ends with the browser. */
function write(name: string, value: string, maxAge: number | null, domain: string | null): void {
  const life = maxAge === null ? '' : `; Max-Age=${maxAge}`;
  // biome-ignore lint/suspicious/noDocumentCookie: CookieStore is absent from two of the three engines.
  document.cookie = `${name}=${value}; Path=/${life}; SameSite=Lax; Secure${domain ? `; Domain=${domain}` : ''}`;
}

/**
 * Sets a cookie on the widest domain that the browser accepts, or deletes it if `value` is empty. Tries narrower domains
 * until the page's cookies have the value, or none of the name. A malformed one may remain beside it. (The edge uses the
 * public suffix list.)
 */
function keepWide(name: string, value: string, maxAge: number | null): void {
  const labels = location.hostname.split('.');
  const pair = `; ${name}=${value && `${value};`}`;
  for (let from = labels.length - 1; jar().includes(pair) === !value && from >= -1; from--) {
    write(name, value, value ? maxAge : 0, from < 0 ? null : labels.slice(from).join('.'));
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
      if (!present.includes(`; ${name}=`)) write(name, value, maxAge, domain);
      else if (newer && present.includes(`; ${name}=${value};`)) write(name, newer, maxAge, domain);
    }
    // Storage comes last, because a browser may forbid only storage. A sandbox that forbids cookies forbids both.
    localStorage.removeItem('tagyard.session');
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
  if (!page.started) {
    page.started = true;
    window.dataLayer = window.dataLayer || [];
    window.dataLayer.push({ 'gtm.start': Date.now(), event: 'gtm.js' });
  }
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
