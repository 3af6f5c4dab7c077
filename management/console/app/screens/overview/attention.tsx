import { shownHostsIn } from '../../../../../base/host-name.ts';
import { fetchContainers, type ListedContainer, TROUBLE } from '../../data/containers.ts';
import { type Query, useQuery } from '../../data/query.ts';
import { StateMark } from '../../parts/marks.tsx';
import { Section } from '../../parts/page.tsx';
import { Known } from '../../parts/states.tsx';
import { count } from '../../text/format.ts';

/** Of each search. Beyond it, a cause has at least this many containers. */
const MOST = 100;
const NAMED = 3;

/** Containers that have the same trouble. */
interface Cause {
  readonly sentence: string;
  readonly containers: readonly ListedContainer[];
}

interface Trouble {
  readonly causes: readonly Cause[];
  readonly hasMore: boolean;
}

/** Reads the containers with trouble, the cause of most first. */
export function useTrouble(client: string): Query<Trouble> {
  return useQuery(`containers attention ${client}`, async () => {
    const newest = { sort: '-updatedAt', limit: MOST, ...(client === '' ? {} : { client }) } as const;
    const [named, partial] = await Promise.all([
      fetchContainers({ ...newest, state: TROUBLE }),
      // They are served, but not all of their servers run, or their host doesn't report.
      fetchContainers({ ...newest, state: ['serving', 'paused'], health: ['degraded', 'unknown'] }),
    ]);
    const groups = Map.groupBy([...named.containers, ...partial.containers], ({ state }) => state.sentence);
    const causes = [...groups].map(([sentence, containers]) => ({ sentence, containers }));
    return {
      causes: causes.toSorted((one, other) => other.containers.length - one.containers.length),
      hasMore: named.next !== null || partial.next !== null,
    };
  });
}

/** What is wrong, by cause: how many containers it concerns, which, and what to do. */
export function Attention({ query }: { query: Query<Trouble> }) {
  return (
    <Section id="attention" title="Needs attention">
      <Known query={query} rows={1}>
        {({ causes, hasMore }) =>
          causes.length === 0 ? (
            <p class="calm">Nothing. All containers do what they should.</p>
          ) : (
            <ul class="rows">
              {causes.map((cause) => (
                <Row key={cause.sentence} cause={cause} hasMore={hasMore} />
              ))}
            </ul>
          )
        }
      </Known>
    </Section>
  );
}

function Row({ cause: { sentence, containers }, hasMore }: { cause: Cause; hasMore: boolean }) {
  const [first] = containers;
  if (first === undefined) return null;
  const { name: state, detail, remedy } = first.state;
  const rest = containers.length - NAMED;
  const isOne = containers.length === 1;
  return (
    <li class="cause">
      <span class="number amount-of">{`${count(containers.length)}${hasMore ? '+' : ''}`}</span>
      <StateMark of={state} />
      <div class="grow">
        <span class="strong">{sentence}</span>
        <div class="small">
          {containers.slice(0, NAMED).map(({ id, name }, index) => (
            <span key={id}>
              {index > 0 && ', '}
              <a href={`/console/containers/${id}`}>{name}</a>
            </span>
          ))}
          {rest > 0 && ` and ${count(rest)} more`}.{' '}
          <span class="dim">
            {isOne && detail !== null && shownHostsIn(detail)} {remedy}
          </span>
        </div>
      </div>
      {(isOne || TROUBLE.includes(state)) && (
        <a
          class="button"
          href={isOne ? `/console/containers/${first.id}` : `/console/containers?state=${state}`}
          aria-label={isOne ? `Solve ${first.name}` : `Show the containers: ${sentence}`}
        >
          {isOne ? 'Solve' : 'Show'}
        </a>
      )}
    </li>
  );
}
