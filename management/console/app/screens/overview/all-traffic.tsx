import { RangeChoice, rangeText, useRange } from '../../charts/range.tsx';
import { RequestsChart } from '../../charts/traffic-charts.tsx';
import { usePolling, useQuery } from '../../data/query.ts';
import { pollOf, readTraffic, sumOf } from '../../data/traffic.ts';
import { Section } from '../../parts/page.tsx';
import { Known } from '../../parts/states.tsx';

/** The requests of all containers, or of a client's. Where nothing is measured, nothing is shown. */
export function AllTraffic({ client }: { client: string }) {
  const { range, set } = useRange();
  const { span, step, to } = range;
  const query = useQuery(`traffic of all ${client} ${span.name} ${step} ${to}`, () =>
    readTraffic(client === '' ? null : client, range, 'clients'),
  );
  const isMeasured = query.data !== null;
  usePolling(query, isMeasured ? pollOf(range) : null);
  if (!isMeasured) return null;
  return (
    <Section id="traffic" title="Traffic of all containers" aside={<RangeChoice range={range} set={set} />}>
      <Known query={query} rows={6}>
        {(traffic) =>
          traffic !== null && (
            <>
              <p class="figure">
                <strong>{sumOf(traffic, 'requests')} requests</strong>{' '}
                <span class="dim">
                  {rangeText(range)}, {sumOf(traffic, 'errors')} answered with an error
                </span>
              </p>
              <RequestsChart traffic={traffic} />
            </>
          )
        }
      </Known>
    </Section>
  );
}
