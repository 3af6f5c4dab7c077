import { useMemo } from 'preact/hooks';
import { type Traffic, type TrafficPoint, type TrafficStep, trafficSteps } from '../data/traffic.ts';
import { count } from '../text/format.ts';
import { Chart } from './chart.tsx';
import { perStep } from './range.tsx';

/** The classes of status codes, in the order in which bars are stacked. */
const CLASSES = [
  ['2xx', 'good'],
  ['3xx', 'busy'],
  ['4xx', 'warn'],
  ['5xx', 'bad'],
] as const;

const LATENCIES = [
  ['p50', 'good'],
  ['p95', 'busy'],
  ['p99', 'bad'],
] as const;

const percent = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} %`;
const milliseconds = (value: number) => `${count(Math.round(value))} ms`;

/** A value of each step; `zero` is what a step without requests has. */
function valuesOf(
  steps: readonly TrafficStep[],
  zero: number | null,
  of: (point: TrafficPoint) => number | null,
): (number | null)[] {
  return steps.map(({ point }) => (point === 'unknown' ? null : point === 'zero' ? zero : of(point)));
}

function useSteps(traffic: Traffic) {
  return useMemo(() => {
    const steps = trafficSteps(traffic);
    return { steps, times: steps.map(({ time }) => time) };
  }, [traffic]);
}

/** Requests by the class of their status, stacked. */
export function RequestsChart({ traffic }: { traffic: Traffic }) {
  const { steps, times } = useSteps(traffic);
  const series = useMemo(
    () =>
      CLASSES.map(([name, colour]) => ({
        name,
        colour,
        values: valuesOf(steps, 0, ({ statuses }) => statuses[name] ?? 0),
      })),
    [steps],
  );
  return (
    <Chart
      title={`Requests ${perStep(traffic)} by status`}
      unit="requests"
      kind="bars"
      times={times}
      series={series}
      text={count}
    />
  );
}

export function LatencyChart({ traffic }: { traffic: Traffic }) {
  const { steps, times } = useSteps(traffic);
  const series = useMemo(
    () =>
      LATENCIES.map(([name, colour]) => ({
        name,
        colour,
        values: valuesOf(steps, null, ({ latency }) => latency[name]),
      })),
    [steps],
  );
  return (
    <Chart
      title="Latency until the answer’s headers"
      unit="ms"
      kind="lines"
      times={times}
      series={series}
      text={milliseconds}
    />
  );
}

/** The percentage of requests with full consent, among those whose consent is known. */
export function ConsentChart({ traffic }: { traffic: Traffic }) {
  const { steps, times } = useSteps(traffic);
  const series = useMemo(
    () => [
      {
        name: 'full consent',
        colour: 'good',
        values: valuesOf(steps, null, ({ consentShare: known }) => (known === null ? null : known * 100)),
      },
    ],
    [steps],
  );
  return (
    <Chart
      title="Requests with full consent"
      unit="%"
      kind="lines"
      top={100}
      times={times}
      series={series}
      text={percent}
    />
  );
}

/** The percentage of pages with something blocked, among those that reported about blockers. */
export function BlockedChart({ traffic }: { traffic: Traffic }) {
  const { steps, times } = useSteps(traffic);
  const series = useMemo(
    () => [
      {
        name: 'blocked',
        colour: 'warn',
        values: valuesOf(steps, null, ({ blocked, reports }) =>
          reports === 0 ? null : (blocked / reports) * 100,
        ),
      },
    ],
    [steps],
  );
  return (
    <Chart
      title="Pages with a blocker"
      unit="%"
      kind="lines"
      top={100}
      times={times}
      series={series}
      text={percent}
    />
  );
}
