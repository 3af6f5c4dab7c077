import { type components, problemFrom } from '../../../../base/client/index.ts';
import { sendInSession } from './api.ts';

export type Traffic = components['schemas']['Traffic'];
export type TrafficPoint = components['schemas']['TrafficPoint'];

/** Milliseconds between two reads of a shown range that ends now; longer for long spans. */
const POLL_MS = 2_000;
const LONG_POLL_MS = 30_000;

const MINUTE = 60;
const HOUR = 3_600;
const DAY = 86_400;

/** Seconds of one point, by the step's name in the page's address. */
export const TRAFFIC_STEPS = { minute: MINUTE, hour: HOUR, day: DAY } as const;
export type StepName = keyof typeof TRAFFIC_STEPS;

/** The spans that a chart can show, with the steps that suit each, the usual one first. */
export const SPANS = [
  { name: 'Hour', seconds: HOUR, steps: ['minute'] },
  { name: 'Day', seconds: DAY, steps: ['hour', 'minute'] },
  { name: 'Week', seconds: 7 * DAY, steps: ['hour', 'day'] },
  { name: 'Month', seconds: 30 * DAY, steps: ['day', 'hour'] },
  { name: 'Quarter', seconds: 90 * DAY, steps: ['day', 'hour'] },
] as const satisfies readonly { name: string; seconds: number; steps: readonly StepName[] }[];
export type Span = (typeof SPANS)[number];

/** Which traffic is shown. */
export interface TrafficRange {
  readonly span: Span;
  readonly step: StepName;
  /** Where it ends, milliseconds since the epoch; `null`: now. */
  readonly to: number | null;
}

/** How often the traffic of a range is read again, milliseconds; `null`: never, because the range is over. */
export function pollOf({ span, to }: TrafficRange): number | null {
  if (to !== null) return null;
  return span.seconds <= DAY ? POLL_MS : LONG_POLL_MS;
}

/**
 * The traffic of a container or client, or of all that the person may read; `null`: this installation doesn’t measure any.
 */
export async function readTraffic(
  id: string | null,
  { span, step, to }: TrafficRange,
  of: 'server-containers' | 'clients' = 'server-containers',
): Promise<Traffic | null> {
  const size = TRAFFIC_STEPS[step];
  const end = Math.ceil((to ?? Date.now()) / 1000 / size) * size;
  const at = (time: number) => new Date(time * 1000).toISOString();
  const query = new URLSearchParams({ from: at(end - span.seconds), to: at(end), step: String(size) });
  const path = `${id === null ? '' : `/${of}/${encodeURIComponent(id)}`}/traffic?${query}`;
  const response = await sendInSession(new Request(path, { headers: { accept: 'application/json' } }));
  if (response.ok) return (await response.json()) as Traffic;
  const problem = await problemFrom('GET traffic', response);
  // The route is missing, not the container.
  if (problem.status === 404 && problem.code !== 'unknown_container' && problem.code !== 'unknown_client')
    return null;
  throw problem;
}

type Counted = 'requests' | 'errors' | 'lostHits' | 'blocked' | 'reports' | 'events' | 'bots';

/** The sum of all points. */
export function sumOf({ points }: Traffic, what: Counted): number {
  return points.reduce((sum, point) => sum + point[what], 0);
}

type Grouped = 'statuses' | 'countries' | 'consent';

/** The sums of all points by value, the greatest first. */
export function sumsOf({ points }: Traffic, what: Grouped): readonly (readonly [string, number])[] {
  const sums = new Map<string, number>();
  for (const point of points) {
    for (const [value, number] of Object.entries(point[what])) {
      sums.set(value, (sums.get(value) ?? 0) + number);
    }
  }
  return [...sums].sort(([, a], [, b]) => b - a);
}

/** A step of the range: its point; without one, `zero`: there was no request; `unknown`: counts are missing. */
export interface TrafficStep {
  /** Seconds since the epoch. */
  readonly time: number;
  readonly point: TrafficPoint | 'zero' | 'unknown';
}

export function trafficSteps({ from, to, step, points, missing }: Traffic): TrafficStep[] {
  const start = Date.parse(from) / 1000;
  const end = Math.min(Date.parse(to), Date.now()) / 1000;
  const known = new Map(points.map((point) => [Date.parse(point.time) / 1000, point]));
  const gaps = missing.map((gap) => ({ from: Date.parse(gap.from) / 1000, to: Date.parse(gap.to) / 1000 }));
  const steps: TrafficStep[] = [];
  for (let time = start; time < end; time += step) {
    const isMissing = gaps.some((gap) => time < gap.to && time + step > gap.from);
    steps.push({ time, point: known.get(time) ?? (isMissing ? 'unknown' : 'zero') });
  }
  return steps;
}
