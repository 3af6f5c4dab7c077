import { useQuery } from '../../data/query.ts';
import { readTraffic, SPANS, sumOf } from '../../data/traffic.ts';
import { Section } from '../../parts/page.tsx';
import { TrafficChart } from '../container/traffic-chart.tsx';

/** The requests of all containers in the last day. Where nothing is measured, nothing is shown. */
export function AllTraffic() {
  const query = useQuery('traffic of all', () => readTraffic(null, SPANS[1]));
  if (!query.data) return null;
  return (
    <Section id="traffic" title="Traffic of all containers">
      <p class="figure">
        <strong>{sumOf(query.data, 'requests')} requests</strong> <span class="dim">in the last day</span>
      </p>
      <TrafficChart traffic={query.data} />
    </Section>
  );
}
