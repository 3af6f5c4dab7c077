import { shownHost } from '../../../../../base/host-name.ts';
import { CONTAINER_STATES, fetchContainers, fetchCounts } from '../../data/containers.ts';
import { useQuery } from '../../data/query.ts';
import { clientName, mayAct, me } from '../../data/session.ts';
import { shownClient } from '../../data/shown-client.ts';
import { Ago, States } from '../../parts/marks.tsx';
import { Page, Section } from '../../parts/page.tsx';
import { Empty, Known, Skeleton } from '../../parts/states.tsx';
import { count } from '../../text/format.ts';
import { stateWords } from '../../text/status.ts';
import { AllTraffic } from './all-traffic.tsx';
import { Attention, useTrouble } from './attention.tsx';
import { EndsSoon } from './ending.tsx';
import { SavedTiles } from './saved-tiles.tsx';

const SHOWN = 12;

/** First what needs a person's attention, then the numbers of containers, then what changed last. */
export function Overview() {
  const client = shownClient.value;
  const of = client === '' ? {} : { client };
  const counts = useQuery(`containers counts ${client}`, () => fetchCounts(of.client));
  const newest = useQuery(`containers newest ${client}`, () =>
    fetchContainers({ ...of, sort: '-updatedAt', limit: SHOWN }),
  );
  const trouble = useTrouble(client);
  // What is below has its place only once the heights of these are known: shown earlier, it would move.
  const isKnown = [counts, newest, trouble].every(({ data, error }) => data !== undefined || error !== null);
  return (
    <Page
      title="Overview"
      actions={
        me().clients.some(({ id }) => mayAct(id)) && (
          <a class="button primary" href="/console/containers/new">
            New container
          </a>
        )
      }
    >
      {isKnown ? (
        <>
          {counts.data?.total !== 0 && (
            <>
              <Attention query={trouble} />
              <EndsSoon />
            </>
          )}
          <Known query={counts} rows={2}>
            {(known) => (
              <ul class="tiles" aria-label="Containers in numbers">
                <Tile
                  number={known.total}
                  name={known.total === 1 ? 'container' : 'containers'}
                  href="/console/containers"
                />
                {CONTAINER_STATES.filter((state) => state === 'serving' || known.state[state] > 0).map(
                  (state) => (
                    <Tile
                      key={state}
                      number={known.state[state]}
                      name={stateWords(state).toLowerCase()}
                      href={`/console/containers?state=${state}`}
                    />
                  ),
                )}
              </ul>
            )}
          </Known>
          <SavedTiles />
          <Section
            id="containers"
            title="Containers"
            aside={
              <a href="/console/containers">{counts.data ? `All ${count(counts.data.total)}` : 'All'}</a>
            }
          >
            <Known query={newest} rows={4}>
              {({ containers }) =>
                containers.length === 0 ? (
                  <Empty title="No container yet">
                    <p>A container runs your server tags on your own host.</p>
                    {me().clients.some(({ id }) => mayAct(id)) ? (
                      <a class="button primary" href="/console/containers/new">
                        Create the first one
                      </a>
                    ) : (
                      <p>
                        {me().isOperator
                          ? 'Containers of a client are shown to its members. As an operator you manage '
                          : 'An owner or admin of your client can create one.'}
                        {me().isOperator && (
                          <>
                            <a href="/console/hosts">hosts</a> and <a href="/console/clients">clients</a>.
                          </>
                        )}
                      </p>
                    )}
                  </Empty>
                ) : (
                  <ul class="rows lines">
                    {containers.map(({ id, name, clientId, state, domains, updatedAt }) => (
                      <li key={id}>
                        <a class="strong grow" title={name} data-row href={`/console/containers/${id}`}>
                          {name}
                        </a>
                        <span class="dim wide-only">{shownHost(domains[0] ?? '')}</span>
                        <span class="dim wide-only">{clientName(clientId)}</span>
                        <States state={state} />
                        <span class="dim right">
                          <Ago at={updatedAt} />
                        </span>
                      </li>
                    ))}
                  </ul>
                )
              }
            </Known>
          </Section>
          <AllTraffic client={client} />
        </>
      ) : (
        <Skeleton rows={12} />
      )}
    </Page>
  );
}

function Tile({ number, name, href }: { number: number; name: string; href: string }) {
  return (
    <li>
      <a class="tile" href={href}>
        <span class="number">{count(number)}</span>
        <span class="dim">{name}</span>
      </a>
    </li>
  );
}
