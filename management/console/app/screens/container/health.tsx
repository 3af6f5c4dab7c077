import type { components } from '../../../../../base/client/index.ts';
import { shownHostsIn } from '../../../../../base/host-name.ts';
import { api } from '../../data/api.ts';
import type { Container } from '../../data/containers.ts';
import { useQuery } from '../../data/query.ts';
import { Ago, StateMark, States } from '../../parts/marks.tsx';
import { Section } from '../../parts/page.tsx';
import { Known } from '../../parts/states.tsx';
import { plural, words } from '../../text/format.ts';
import { OperationSteps } from './steps.tsx';

type Resources = components['schemas']['Resources'];

const TARGETS: Readonly<Record<string, string>> = {
  network: 'Network',
  policy: 'Policy script',
  containers: 'Containers',
  proxy: 'Proxy vhosts',
  kv: 'KV documents',
  route: 'Worker route',
  dns: 'DNS records',
  certificate: 'Certificates',
};

/** How the container is and why, from its network outwards to DNS. */
export function HealthSection({ container }: { container: Container }) {
  const { id, state, operation } = container;
  const query = useQuery(`container resources ${id}`, async () => {
    return (await api.get('/server-containers/{id}/resources', { params: { path: { id } } })).data;
  });
  return (
    <Section id="health" title="Health" aside={<States state={state} />}>
      {operation !== null && operation.status !== 'succeeded' && <OperationSteps id={operation.id} />}
      <Known query={query} rows={5}>
        {(resources) => <Tree resources={resources} />}
      </Known>
    </Section>
  );
}

function Tree({ resources }: { resources: Resources }) {
  const { ready, reason, message, desired, applied, asOf, targets } = resources;
  return (
    <>
      <p>
        <StateMark of={ready ? 'ready' : 'not_ready'} />{' '}
        {!ready && (
          <>
            <span class="strong">{words(reason)}</span> {message.replace(`${reason}: `, '')}{' '}
          </>
        )}
        <span class="dim">
          {desired === applied ? 'The newest commit is applied' : 'A newer commit waits'}
          {applied !== null && (
            <>
              {' '}
              (<code>{applied.slice(0, 8)}</code>)
            </>
          )}
          , as of <Ago at={asOf} />.
        </span>
      </p>
      <ul class="tree">
        {targets.map(({ target, state, resources: parts }) => (
          <li key={target}>
            <details open={state !== 'applied'}>
              <summary>
                <span class="grow">
                  {TARGETS[target] ?? words(target)}{' '}
                  <span class="dim small">{plural(parts.length, 'resource')}</span>
                </span>
                <StateMark of={state} />
              </summary>
              <ul>
                {parts.map((part) => (
                  <li key={part.key}>
                    <code class="grow">{part.key}</code>
                    {part.detail !== null && <span class="small">{shownHostsIn(part.detail)}</span>}
                    {part.notAfter !== null && (
                      <span class="small dim">
                        ends <Ago at={part.notAfter} />
                      </span>
                    )}
                    {part.nextAt !== null && (
                      <span class="small dim">
                        next try <Ago at={part.nextAt} />
                      </span>
                    )}
                    <StateMark of={part.state} />
                  </li>
                ))}
              </ul>
            </details>
          </li>
        ))}
      </ul>
    </>
  );
}
