import { problemFrom } from '../../../../gitops/clients/management/index.ts';
import { sendInSession } from './api.ts';

/** The parts of an answer of the traffic API that the console shows. Times are RFC 3339. */
export interface Traffic {
  readonly from: string;
  readonly to: string;
  /** Seconds of one point. */
  readonly step: number;
  readonly points: readonly TrafficPoint[];
  /** Spans of which nothing is known: they are no zeros. */
  readonly missing: readonly unknown[];
}

interface TrafficPoint {
  readonly time: string;
  readonly requests: number;
  /** Requests that were answered with an error code. */
  readonly errors?: number;
  /** Reports of pages that something was blocked. */
  readonly blocked?: number;
  /** Events of analytics. */
  readonly events?: number;
}

/** Traffic is read again this often while it is shown, milliseconds. */
export const TRAFFIC_POLL_MS = 2_000;

/** The spans that a chart can show, with the seconds of one point. */
export const SPANS = [
  { name: 'Hour', seconds: 3_600, step: 60 },
  { name: 'Day', seconds: 86_400, step: 3_600 },
  { name: 'Week', seconds: 604_800, step: 3_600 },
  { name: 'Month', seconds: 2_592_000, step: 86_400 },
] as const;
export type Span = (typeof SPANS)[number];

/**
 * The traffic of a container, or of all that the person may read, up to now; `null`: this installation doesn’t measure
 * any.
 */
export async function readTraffic(id: string | null, { seconds, step }: Span): Promise<Traffic | null> {
  const now = Math.ceil(Date.now() / 1000 / step) * step;
  const at = (time: number) => new Date(time * 1000).toISOString();
  const query = new URLSearchParams({ from: at(now - seconds), to: at(now), step: String(step) });
  const path = `${id === null ? '' : `/server-containers/${encodeURIComponent(id)}`}/traffic?${query}`;
  const response = await sendInSession(new Request(path, { headers: { accept: 'application/json' } }));
  if (response.ok) return (await response.json()) as Traffic;
  const problem = await problemFrom('GET traffic', response);
  // The route is missing, not the container.
  if (problem.status === 404 && problem.code !== 'unknown_container') return null;
  throw problem;
}

type Counted = 'requests' | 'errors' | 'blocked' | 'events';

/** The sum of all points; `null`: the API doesn't count it. */
export function sumOf({ points }: Traffic, what: Counted): number | null {
  if (what !== 'requests' && !points.some((point) => point[what] !== undefined)) return null;
  return points.reduce((sum, point) => sum + (point[what] ?? 0), 0);
}
