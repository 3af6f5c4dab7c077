/** The Cookie Store API. `expires` (ms since the epoch) is missing in engines that return names and values only. */
interface CookieJar {
  get(name: string): Promise<{ readonly expires?: number | null } | null>;
}

const { cookieStore: jar } = window as unknown as { cookieStore?: CookieJar };

/** Safari limits a script's cookie to 7 days, other browsers to 400. One day of tolerance. */
const CAPPED_MS = 8 * 86_400_000;

const PROBE = 'tagyard_probe';

/** True if the cookie expires within about a week; undefined if the browser does not report the expiry. */
export async function endsSoon(name: string): Promise<boolean | undefined> {
  try {
    const cookie = jar ? await jar.get(name) : null;
    return cookie?.expires ? cookie.expires - Date.now() < CAPPED_MS : undefined;
  } catch {
    // A sandbox forbids access to cookies.
    return undefined;
  }
}

/**
 * Whether this browser limits the lifetime of cookies that scripts write. If the browser returns an expiry, a temporary
 * cookie measures the limit, and `itp_measured` is true. Otherwise the answer is derived from the engine; it is undefined
 * for a WebKit without a version.
 */
export async function scriptCookiesCapped(): Promise<{ itp: boolean | undefined; itp_measured: boolean }> {
  const measured = await probe();
  return { itp: measured === undefined ? byEngine() : measured, itp_measured: measured !== undefined };
}

async function probe(): Promise<boolean | undefined> {
  if (!jar) return undefined;
  write(34560000);
  const capped = await endsSoon(PROBE);
  write(0);
  return capped;
}

function write(maxAge: number): void {
  try {
    // biome-ignore lint/suspicious/noDocumentCookie: this measures cookies that a script writes this way.
    document.cookie = `${PROBE}=1; Path=/; Max-Age=${maxAge}; SameSite=Lax; Secure`;
  } catch {}
}

/**
 * Safari limits cookies since 12.1, and every Safari that can run this script is newer. Other WebKit browsers can't be
 * identified.
 */
function byEngine(): boolean | undefined {
  const agent = navigator.userAgent;
  if (/Chrome\/|Gecko\/\d/.test(agent)) return false;
  return /Version\/.*Safari\//.test(agent) || undefined;
}
