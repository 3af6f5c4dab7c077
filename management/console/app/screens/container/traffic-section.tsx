import { useState } from 'preact/hooks';
import { useLiveRequests } from '../../data/live-requests.ts';
import { usePolling, useQuery } from '../../data/query.ts';
import { readTraffic, SPANS, type Span, sumOf, TRAFFIC_POLL_MS, type Traffic } from '../../data/traffic.ts';
import { Section } from '../../parts/page.tsx';
import { Known } from '../../parts/states.tsx';
import { TrafficChart } from './traffic-chart.tsx';

/** How much arrived: the sum without a click, its course as a chart, and the same as a table. */
export function TrafficSection({ id }: { id: string }) {
  const [span, setSpan] = useState<Span>(SPANS[1]);
  const query = useQuery(`traffic ${id} ${span.name}`, () => readTraffic(id, span));
  const isMeasured = query.data !== null;
  usePolling(query, isMeasured ? TRAFFIC_POLL_MS : null);
  useLiveRequests(id, query);
  return (
    <Section
      id="traffic"
      title="Traffic"
      aside={
        isMeasured && (
          <fieldset class="segments">
            <legend class="hidden">Time span</legend>
            {SPANS.map((one) => (
              <button key={one.name} type="button" aria-pressed={one === span} onClick={() => setSpan(one)}>
                {one.name}
              </button>
            ))}
          </fieldset>
        )
      }
    >
      <Known query={query} rows={5}>
        {(traffic) =>
          traffic === null ? (
            <p class="dim">This installation doesn’t measure traffic.</p>
          ) : (
            <>
              <p class="figure">
                <strong>{sumOf(traffic, 'requests')} requests</strong>{' '}
                <span class="dim">in the last {span.name.toLowerCase()}</span>
              </p>
              <Counts traffic={traffic} />
              <TrafficChart traffic={traffic} />
            </>
          )
        }
      </Known>
    </Section>
  );
}

const COUNTS = [
  ['events', 'events'],
  ['errors', 'answered with an error'],
  ['blocked', 'reports of blocked tags'],
] as const;

function Counts({ traffic }: { traffic: Traffic }) {
  return (
    <p class="dim">
      {COUNTS.flatMap(([what, name]) => {
        const sum = sumOf(traffic, what);
        return sum === null ? [] : [`${sum} ${name}`];
      }).join(' · ')}
    </p>
  );
}
