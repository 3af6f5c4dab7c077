/** The page's cookies, each between `; ` and `;`. Empty in a sandbox that forbids access. */
export function jar(): string {
  try {
    return `; ${document.cookie};`;
  } catch {
    return '';
  }
}

/** The page's cookies with these names. A name that ends with `*` is a prefix. */
export function pickCookies(names: string[]): Record<string, string> {
  const found: Record<string, string> = {};
  jar().replace(/; ([^=;]+)=([^;]*)/g, (_all, name: string, value: string) => {
    for (const pattern of names) {
      if (pattern === name || (pattern.endsWith('*') && name.startsWith(pattern.slice(0, -1))))
        found[name] = value;
    }
    return '';
  });
  return found;
}

export function writeCookie(name: string, value: string, maxAge: number, domain: string | null): void {
  // biome-ignore lint/suspicious/noDocumentCookie: CookieStore is absent from two of the three engines.
  document.cookie = `${name}=${value}; Path=/; Max-Age=${maxAge}; SameSite=Lax; Secure${domain ? `; Domain=${domain}` : ''}`;
}

/**
 * Sets a cookie on the widest domain that the browser accepts, or deletes it if `value` is empty. Tries narrower
 * domains until the page's cookies have the value or, after a deletion, no cookie of that name. A malformed cookie of
 * the name may remain. (The edge finds that domain by the public suffix list.)
 */
export function keepWide(name: string, value: string, maxAge: number): void {
  const labels = location.hostname.split('.');
  const pair = `; ${name}=${value && `${value};`}`;
  for (let from = labels.length - 1; jar().includes(pair) === !value && from >= -1; from--) {
    writeCookie(name, value, value ? maxAge : 0, from < 0 ? null : labels.slice(from).join('.'));
  }
}

/** Deletes the page's cookies of these names. */
export function drop(names: string[] = []): void {
  for (const name of names) keepWide(name, '', 0);
}

/** An item of the page's storage, or nothing. */
export function stored(name: string): string {
  try {
    return localStorage.getItem(name) || '';
  } catch {
    return '';
  }
}

/** Stores an item in the page's storage, or deletes it if `value` is empty. A browser may forbid storage. */
export function store(name: string, value: string): void {
  try {
    if (value) localStorage.setItem(name, value);
    else localStorage.removeItem(name);
  } catch {}
}
