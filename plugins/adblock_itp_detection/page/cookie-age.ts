/** The asynchronous cookie API; `expires` (ms since the epoch) is absent where an engine shows names and values only. */
interface CookieJar {
  get(name: string): Promise<{ readonly expires?: number | null } | null>;
}

const { cookieStore: jar } = window as unknown as { cookieStore?: CookieJar };

/** What Safari leaves a script's cookie is seven days; what the others leave, 400. In milliseconds, with a day's slack. */
const CAPPED = 8 * 86_400_000;

const PROBE = 'tagyard_probe';

/** True where the cookie ends within a week or so; undefined where nobody tells. */
export async function endsSoon(name: string): Promise<boolean | undefined> {
  try {
    const cookie = jar ? await jar.get(name) : null;
    return cookie?.expires ? cookie.expires - Date.now() < CAPPED : undefined;
  } catch {
    // A sandbox has no cookies to ask for.
    return undefined;
  }
}

/**
 * Whether this browser shortens what scripts write: measured by a cookie that is written and taken back, where that is
 * allowed and the browser shows an expiry, and `itp_measured` says so. Else by the engine, as its makers document it,
 * and unknown for WebKit that names no version.
 */
export async function scriptCookiesCapped(
  mayWrite: boolean,
): Promise<{ itp: boolean | undefined; itp_measured: boolean }> {
  const measured = mayWrite ? await probe() : undefined;
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
    // biome-ignore lint/suspicious/noDocumentCookie: what a script writes this way is what is measured.
    document.cookie = `${PROBE}=1; Path=/; Max-Age=${maxAge}; SameSite=Lax; Secure`;
  } catch {}
}

/** Safari does, since 12.1: hardly one that runs this script is older. Others on its engine don't say which they are. */
function byEngine(): boolean | undefined {
  const agent = navigator.userAgent;
  if (/Chrome\/|Gecko\/\d/.test(agent)) return false;
  return /Version\/.*Safari\//.test(agent) || undefined;
}
