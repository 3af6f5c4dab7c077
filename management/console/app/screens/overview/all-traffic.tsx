import { usePolling, useQuery } from '../../data/query.ts';
import { readTraffic, SPANS, sumOf, TRAFFIC_POLL_MS } from '../../data/traffic.ts';
import { Section } from '../../parts/page.tsx';
import { Known } from '../../parts/states.tsx';
import { TrafficChart } from '../container/traffic-chart.tsx';

/** The requests of all containers in the last day. Where nothing is measured, nothing is shown. */
export function AllTraffic() {
  const query = useQuery('traffic of all', () => readTraffic(null, SPANS[1]));
  const isMeasured = query.data !== null;
  usePolling(query, isMeasured ? TRAFFIC_POLL_MS : null);
  if (!isMeasured) return null;
  return (
    <Section id="traffic" title="Traffic of all containers">
      <Known query={query} rows={5}>
        {(traffic) =>
          traffic !== null && (
            <>
              <p class="figure">
                <strong>{sumOf(traffic, 'requests')} requests</strong>{' '}
                <span class="dim">in the last day</span>
              </p>
              <TrafficChart traffic={traffic} />
            </>
          )
        }
      </Known>
    </Section>
  );
}
