import { shownHostsIn } from '../../../../../base/host-name.ts';
import type { Container } from '../../data/containers.ts';
import { useQuery } from '../../data/query.ts';
import { readTraffic, SPANS, sumOf } from '../../data/traffic.ts';
import { tabPath } from '../../parts/container-tabs.tsx';
import { percent, plural } from '../../text/format.ts';
import { toneOf } from '../../text/status.ts';
import { ResumeButton } from './resume.tsx';

const [, DAY] = SPANS;

/** What the container does now; or what is wrong with it, why, and the one thing to do. */
export function Sentence({ container }: { container: Container | undefined }) {
  if (container === undefined) return <p class="sentence"> </p>;
  const { id, state } = container;
  if (state.name === 'serving' && state.detail === null) return <Serving container={container} />;
  return (
    <div class={`sentence ${toneOf(state.name)}`} role="status">
      <p class="grow">
        <strong>{state.sentence}</strong> {state.detail !== null && shownHostsIn(state.detail)}{' '}
        <span class="dim">{state.remedy}</span>
      </p>
      {state.name === 'waits_for_dns' ? (
        <a class="button" href={tabPath(id, 'domains')}>
          Records to set
        </a>
      ) : (
        [state.name, ...state.also].some((name) => name === 'off' || name === 'paused') && (
          <ResumeButton container={container} />
        )
      )}
    </div>
  );
}

function Serving({ container: { id, domains, customDomains } }: { container: Container }) {
  const range = { span: DAY, step: DAY.steps[0], to: null };
  // The key is that of the traffic below, which therefore isn't read twice.
  const { data } = useQuery(`traffic ${id} ${DAY.name} ${DAY.steps[0]} null`, () => readTraffic(id, range));
  const parts = [`Serving ${plural(domains.length + customDomains.length, 'domain')}`];
  if (data) {
    const requests = sumOf(data, 'requests');
    parts.push(`${plural(requests, 'request')} in 24 hours`);
    if (requests > 0) parts.push(`${percent(sumOf(data, 'errors') / requests)} errors`);
  }
  return <p class="sentence good">{parts.join(' · ')}</p>;
}
