import type { Sign } from '../base/signing.ts';
import { PROBE_HEADER } from './request-headers.ts';

const MINUTE_MS = 60_000;
/** How many minutes the clocks of a prober and of the edge may differ. */
const MAX_MINUTES = 2;

/**
 * The value of `PROBE_HEADER`: proves for some minutes that a request of this path comes from a probe of our own. `edge`:
 * the site's edge hostname, which all ways to the edge end at.
 */
export async function probeMark(
  sign: Sign,
  { edge, path }: { readonly edge: string; readonly path: string },
  minute: number,
): Promise<string> {
  return `${minute}-${await sign(`probe ${edge} ${path} ${minute}`)}`;
}

/** True for a probe of our own. Nothing is computed for a request without the header. */
export async function isProbe({ headers, url }: Request, sign: Sign, now: number): Promise<boolean> {
  const mark = headers.get(PROBE_HEADER) ?? '';
  const minute = Number.parseInt(mark, 10);
  if (!(Math.abs(now / MINUTE_MS - minute) < MAX_MINUTES)) return false;
  const { hostname: edge, pathname: path } = new URL(url);
  return mark === (await probeMark(sign, { edge, path }, minute));
}
