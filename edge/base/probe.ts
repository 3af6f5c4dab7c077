import type { Sign } from './signing.ts';

const PROBE_HEADER = 'x-tagyard-probe';
const MINUTE_MS = 60_000;
/** How many minutes the clocks of a prober and of the edge may differ. */
const MAX_MINUTES = 2;

/** What a probe asks for, as it arrives: `hostname` is the site's edge hostname, which all ways to the edge end at. */
type Probed = Pick<URL, 'hostname' | 'pathname'>;

async function markOf(sign: Sign, { hostname, pathname }: Probed, minute: number): Promise<string> {
  return `${minute}-${await sign(`probe ${hostname} ${pathname} ${minute}`)}`;
}

/** The header by which the edge knows a probe of our own, for some minutes. `now` in milliseconds since the epoch. */
export async function probeHeader(sign: Sign, probed: Probed, now: number): Promise<Record<string, string>> {
  return { [PROBE_HEADER]: await markOf(sign, probed, Math.floor(now / MINUTE_MS)) };
}

/** True for a probe of our own. Nothing is computed for a request without the header. */
export async function isProbe({ headers, url }: Request, sign: Sign, now: number): Promise<boolean> {
  const mark = headers.get(PROBE_HEADER) ?? '';
  const minute = Number.parseInt(mark, 10);
  if (!(Math.abs(now / MINUTE_MS - minute) < MAX_MINUTES)) return false;
  return mark === (await markOf(sign, new URL(url), minute));
}
