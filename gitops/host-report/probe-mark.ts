import { createHmac, hkdfSync, randomBytes } from 'node:crypto';

/** As in `edge/base/signing.ts`; a test compares the two. */
const PURPOSE = 'tagyard edge signatures 1';
/** As in `edge/base/probe.ts`. */
export const PROBE_RECOGNISED = 'recognised';
const MINUTE_MS = 60_000;

/** The value of the header by which the edge recognises one GET of this host as a probe, as in `edge/base/probe.ts`. */
export function hostProbeMark(
  hopSecret: string,
  { edge, path }: { readonly edge: string; readonly path: string },
  now: number,
): string {
  const minute = Math.floor(now / MINUTE_MS);
  const key = Buffer.from(hkdfSync('sha256', hopSecret, '', PURPOSE, 32));
  const name = randomBytes(16).toString('hex');
  const signed = createHmac('sha256', key).update(`probe GET ${edge} ${path} ${minute} ${name}`);
  return `${minute}-${name}-${signed.digest('hex')}`;
}
