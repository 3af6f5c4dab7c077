import type { components } from '../../../../../base/client/index.ts';
import { api } from '../../data/api.ts';
import { useQuery } from '../../data/query.ts';
import { Ago, StateMark } from '../../parts/marks.tsx';
import { Page, Section } from '../../parts/page.tsx';
import { Empty, Known } from '../../parts/states.tsx';
import { count, words } from '../../text/format.ts';

type Host = components['schemas']['Host'];

/** The hosts: free ports, revision, containers, sites, quotas and checks. */
export default function HostsScreen() {
  const query = useQuery('instance hosts', async () => (await api.get('/hosts')).data);
  return (
    <Page title="Hosts">
      <Known query={query} rows={8}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No host has reported yet">
              <p>Start a provisioner with the sites repository of this instance.</p>
            </Empty>
          ) : (
            items.map((host) => <HostCard key={host.name} host={host} />)
          )
        }
      </Known>
    </Page>
  );
}

function HostCard({ host }: { host: Host }) {
  const { name, state, problem, revision, ports, containers, sites, quotas, checks, asOf } = host;
  return (
    <Section
      id={`host-${name}`}
      title={name}
      aside={
        <>
          <StateMark of={state} />
          <span class="small dim">
            <Ago at={asOf} />
          </span>
        </>
      }
    >
      {problem !== null && <p class="notice warn">{problem}</p>}
      <dl class="facts">
        <dt>Ports</dt>
        <dd>
          {count(ports.free)} of {count(ports.size)} pairs free
        </dd>
        <dt>Revision</dt>
        <dd>{revision === null ? 'none yet' : <code>{revision.slice(0, 8)}</code>}</dd>
        <dt>Containers</dt>
        <dd>{listed(containers)}</dd>
        <dt>Sites</dt>
        <dd>{listed(sites)}</dd>
      </dl>
      {quotas.length > 0 && (
        <ul class="rows">
          {quotas.map(({ name: quota, used, limit, state: how, message, fix }) => (
            <li key={quota}>
              <div class="grow">
                <span class="strong">{words(quota)}</span> {count(used)}
                {limit !== null && ` of ${count(limit)}`}
                <div class="small dim">{message}</div>
                {fix !== null && <div class="small">{fix}</div>}
              </div>
              <StateMark of={how} />
            </li>
          ))}
        </ul>
      )}
      <ul class="rows">
        {checks.map(({ name: check, status, detail, fix }) => (
          <li key={check}>
            <div class="grow">
              <span class="strong">{words(check)}</span> <span class="small dim">{detail}</span>
              {fix !== null && status === 'failed' && <div class="small">{fix}</div>}
            </div>
            <StateMark of={status} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function listed(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).map(
    ([name, number]) => `${count(number)} ${words(name).toLowerCase()}`,
  );
  return parts.length === 0 ? 'none' : parts.join(', ');
}
