import { CountryTable } from '../../charts/countries.tsx';
import { RangeChoice, rangeText, useRange } from '../../charts/range.tsx';
import { BlockedChart, ConsentChart, LatencyChart, RequestsChart } from '../../charts/traffic-charts.tsx';
import { useLiveRequests } from '../../data/live-requests.ts';
import { usePolling, useQuery } from '../../data/query.ts';
import { pollOf, readTraffic, sumOf, sumsOf, type Traffic } from '../../data/traffic.ts';
import { Section } from '../../parts/page.tsx';
import { Known } from '../../parts/states.tsx';

/** How much arrived: first the sums, then charts of their course over time, and unless it is short, what they consist of. */
export function TrafficSection({ id, isShort = false }: { id: string; isShort?: boolean }) {
  const { range, set } = useRange();
  const { span, step, to } = range;
  const query = useQuery(`traffic ${id} ${span.name} ${step} ${to}`, () => readTraffic(id, range));
  const isMeasured = query.data !== null;
  usePolling(query, isMeasured ? pollOf(range) : null);
  useLiveRequests(id, query);
  return (
    <Section id="traffic" title="Traffic" aside={isMeasured && <RangeChoice range={range} set={set} />}>
      <Known query={query} rows={isShort ? 7 : 12}>
        {(traffic) =>
          traffic === null ? (
            <p class="dim">This installation doesn’t measure traffic.</p>
          ) : (
            <>
              <p class="figure">
                <strong>{sumOf(traffic, 'requests')} requests</strong>{' '}
                <span class="dim">{rangeText(range)}</span>
              </p>
              <Counts traffic={traffic} />
              <RequestsChart traffic={traffic} />
              {!isShort && (
                <div class="charts">
                  <LatencyChart traffic={traffic} />
                  <ConsentChart traffic={traffic} />
                  <BlockedChart traffic={traffic} />
                  <CountryTable traffic={traffic} />
                </div>
              )}
            </>
          )
        }
      </Known>
    </Section>
  );
}

const COUNTS = [
  ['events', 'events of analytics'],
  ['errors', 'answered with an error'],
  ['bots', 'by bots'],
] as const;

function Counts({ traffic }: { traffic: Traffic }) {
  const consent = sumsOf(traffic, 'consent');
  const known = consent.reduce((sum, [, number]) => sum + number, 0);
  const [, full = 0] = consent.find(([name]) => name === 'all') ?? [];
  const reports = sumOf(traffic, 'reports');
  const lost = sumOf(traffic, 'lostHits');
  return (
    <p class="dim">
      {[
        ...(lost === 0 ? [] : [`${lost} hits lost`]),
        ...COUNTS.map(([what, name]) => `${sumOf(traffic, what)} ${name}`),
        ...(known === 0 ? [] : [`${Math.round((full / known) * 100)} % with full consent`]),
        ...(reports === 0
          ? []
          : [`${Math.round((sumOf(traffic, 'blocked') / reports) * 100)} % of pages with a blocker`]),
      ].join(' · ')}
    </p>
  );
}
