import type { BootAnswer, TagyardPage } from './state.ts';

/** Not in all browsers. A policy makes objects that `src` accepts where a page's policy refuses text. */
declare const trustedTypes: {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): string };
};

/** A placeholder: rendering the script for a site replaces it by the site's values. */
declare const TAGYARD_VALUES: { edge: string; loader: string; cookies: string[] };

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
  if (pending) load(withPreview(answer.container.scriptUrl), nonce);
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
        fpid: cookies()._fpid,
        session: session ? { id: session } : undefined,
        consent: page.consent,
        cookies: cookies(isRestored),
      }),
    });
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

/** The page's cookies, all or those of some names. Empty in a sandbox that forbids access. */
function cookies(included: (name: string) => boolean = () => true): Record<string, string> {
  const found: Record<string, string> = {};
  try {
    for (const pair of document.cookie.split('; ')) {
      const at = pair.indexOf('=');
      const name = pair.slice(0, at);
      if (at > 0 && included(name)) found[name] = pair.slice(at + 1);
    }
  } catch {}
  return found;
}

/** The page sends only the cookies that the site restores. */
function isRestored(name: string): boolean {
  return values.cookies.some((pattern) =>
    pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  );
}

function stored(): string | null {
  try {
    return localStorage.getItem('tagyard.session');
  } catch {
    return null;
  }
}

function write(name: string, value: string, maxAge: number, domain: string | null): void {
  try {
    // biome-ignore lint/suspicious/noDocumentCookie: CookieStore is absent from two of the three engines.
    document.cookie = `${name}=${value}; Path=/; Max-Age=${maxAge}; SameSite=Lax; Secure${domain ? `; Domain=${domain}` : ''}`;
  } catch {}
}

/** Sets the id, or deletes it if it is empty, on the widest domain that the browser accepts. (The edge uses the public suffix list.) */
function writeId(id: string): void {
  const labels = location.hostname.split('.');
  const maxAge = id ? 34560000 : 0;
  for (let from = labels.length - 1; from >= 0; from--) {
    write('_fpid', id, maxAge, labels.slice(from).join('.'));
    if (!cookies()._fpid === !id) return;
  }
  write('_fpid', id, maxAge, null);
}

/** Writes only cookies that the answer's `Set-Cookie` could not set: Safari shortens the life of what a script writes. */
function keep(answer: BootAnswer): void {
  const present = cookies();
  const id = answer.profile ? answer.profile.id : '';
  try {
    if (id) localStorage.setItem('tagyard.session', answer.session.id);
    else localStorage.removeItem('tagyard.session');
  } catch {}
  if (!present._fpid !== !id) writeId(id);
  for (const cookie of answer.restoreCookies) {
    if (present[cookie.name] === undefined) write(cookie.name, cookie.value, cookie.maxAge, cookie.domain);
  }
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
  // Asynchronous by default, because a script creates it.
  const script = document.createElement('script');
  script.src = trusted(src);
  if (nonce) script.nonce = nonce;
  script.onload = () => {
    page.gtm = 'loaded';
  };
  script.onerror = failed;
  document.head.appendChild(script);
}

function failed(): void {
  page.gtm = 'failed';
  if (page.direct) page.direct();
}
