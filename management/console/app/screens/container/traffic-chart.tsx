import { useEffect, useRef } from 'preact/hooks';
import type { Traffic } from '../../data/traffic.ts';
import { absolute } from '../../text/format.ts';

const HEIGHT = 180;

/** Each step of the span: its requests, or `null` where nothing is known. */
function stepsOf({ from, to, step, points, missing }: Traffic): { time: number; requests: number | null }[] {
  const start = Date.parse(from) / 1000;
  const end = Math.min(Date.parse(to), Date.now()) / 1000;
  const known = new Map(points.map(({ time, requests }) => [Date.parse(time) / 1000, requests]));
  const spans = missing.flatMap((span) => {
    if (typeof span !== 'object' || span === null || !('from' in span) || !('to' in span)) return [];
    return [{ from: Date.parse(String(span.from)) / 1000, to: Date.parse(String(span.to)) / 1000 }];
  });
  const steps = [];
  for (let time = start; time < end; time += step) {
    const isMissing = spans.some((span) => time < span.to && time + step > span.from);
    steps.push({ time, requests: known.get(time) ?? (isMissing ? null : 0) });
  }
  return steps;
}

/** Requests per step, from zero, with gaps where nothing is known. The same numbers are in the table behind it. */
export function TrafficChart({ traffic }: { traffic: Traffic }) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<{ set(steps: ReturnType<typeof stepsOf>): void; destroy(): void } | null>(null);
  const steps = stepsOf(traffic);
  const latest = useRef(steps);
  latest.current = steps;
  useEffect(() => {
    const host = box.current;
    if (host === null) return;
    let isOver = false;
    import('./bars.ts').then(
      ({ drawBars }) => {
        if (!isOver) chart.current = drawBars(host, HEIGHT, latest.current);
      },
      () => {}, // after an update the file can be gone; the table has the numbers
    );
    return () => {
      isOver = true;
      chart.current?.destroy();
      chart.current = null;
    };
  }, []);
  useEffect(() => chart.current?.set(steps), [traffic]);
  const unknown = steps.filter(({ requests }) => requests === null).length;
  return (
    <>
      <div class="chart" ref={box} role="img" aria-label="Requests over time; the table has the numbers" />
      {unknown > 0 && (
        <p class="dim small">
          Gaps: nothing is known of {unknown} of {steps.length} steps.
        </p>
      )}
      <details>
        <summary>As a table</summary>
        <div class="table-box low">
          <table>
            <thead>
              <tr>
                <th scope="col">From</th>
                <th scope="col" class="right">
                  Requests
                </th>
              </tr>
            </thead>
            <tbody>
              {steps.toReversed().map(({ time, requests }) => (
                <tr key={time}>
                  <td>{absolute(time * 1000)}</td>
                  <td class="right">{requests ?? 'unknown'}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </>
  );
}
