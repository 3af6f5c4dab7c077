import { setBounded } from './bounded-map.ts';
import type { Sign } from './signing.ts';

export const PROBE_HEADER = 'x-tagyard-probe';
/** The same header of the answer to a probe: the prober has this edge's secret. */
export const RECOGNISED = 'recognised';
const MINUTE_MS = 60_000;
/** How many minutes the clocks of a prober and of the edge may differ. */
const MAX_MINUTES = 2;
/** The marks that an isolate remembers: more than all probers send while a mark is valid. */
const MOST_USED = 4_096;
/** A minute, a name that the prober has made for this visit, and a signature of both and of the request. */
const MARK = /^(\d{1,12})-([0-9a-f]{32})-[0-9a-f]{64}$/;

/**
 * What a probe asks for, as it arrives: `hostname` is the site's edge hostname, whichever way the request has taken.
 */
interface Probed extends Pick<URL, 'hostname' | 'pathname'> {
  readonly method: string;
}

interface Named {
  readonly minute: number;
  readonly name: string;
}

async function markOf(sign: Sign, probed: Probed, { minute, name }: Named): Promise<string> {
  const { method, hostname, pathname } = probed;
  return `${minute}-${name}-${await sign(`probe ${method} ${hostname} ${pathname} ${minute} ${name}`)}`;
}

/** The header that marks one request as a probe of our own. `now` in milliseconds since the epoch. */
export async function probeHeader(sign: Sign, probed: Probed, now: number): Promise<Record<string, string>> {
  const name = crypto.randomUUID().replaceAll('-', '');
  return { [PROBE_HEADER]: await markOf(sign, probed, { minute: Math.floor(now / MINUTE_MS), name }) };
}

/**
 * Recognises probes of our own, in one isolate. Servers on the way see a mark and could send it again, so it
 * counts once. Nothing is computed for a request without the header.
 */
export function probeJudge(sign: Sign): (request: Request, now: number) => Promise<boolean> {
  const used = new Map<string, true>();
  return async ({ headers, method, url }, now) => {
    const mark = headers.get(PROBE_HEADER);
    if (mark === null) return false;
    const [, minute = '', name = ''] = MARK.exec(mark) ?? [];
    if (name === '' || !(Math.abs(now / MINUTE_MS - Number(minute)) < MAX_MINUTES)) return false;
    const { hostname, pathname } = new URL(url);
    if (mark !== (await markOf(sign, { method, hostname, pathname }, { minute: Number(minute), name })))
      return false;
    // Only what is signed is remembered, so no stranger can make the isolate forget a mark.
    if (used.has(name)) return false;
    setBounded(used, MOST_USED, name, true);
    return true;
  };
}
