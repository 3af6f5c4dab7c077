import { shownHostsIn } from '../../../../../base/host-name.ts';
import { fetchContainers, type ListedContainer, TROUBLE } from '../../data/containers.ts';
import { type Query, useQuery } from '../../data/query.ts';
import { States } from '../../parts/marks.tsx';
import { Section } from '../../parts/page.tsx';
import { Known } from '../../parts/states.tsx';

const MOST = 8;

interface Trouble {
  readonly items: readonly ListedContainer[];
  readonly hasMore: boolean;
}

/** Reads the containers with trouble. */
export function useTrouble(): Query<Trouble> {
  return useQuery('containers attention', async () => {
    const newest = { sort: '-updatedAt', limit: MOST } as const;
    const [named, partial] = await Promise.all([
      fetchContainers({ ...newest, state: TROUBLE }),
      // They are served, but not all of their servers run, or their host doesn't report.
      fetchContainers({ ...newest, state: ['serving', 'paused'], health: ['degraded', 'unknown'] }),
    ]);
    const items = [...named.containers, ...partial.containers];
    return { items: items.slice(0, MOST), hasMore: named.next !== null || items.length > MOST };
  });
}

/** Containers with trouble, each with its fix and a link to its health. */
export function Attention({ query }: { query: Query<Trouble> }) {
  return (
    <Section id="attention" title="Needs attention">
      <Known query={query} rows={1}>
        {({ items, hasMore }) =>
          items.length === 0 ? (
            <p class="calm">Nothing. All containers do what they should.</p>
          ) : (
            <>
              <ul class="rows">
                {items.map((one) => (
                  <Item key={one.id} container={one} />
                ))}
              </ul>
              {hasMore && (
                <p>
                  <a href={`/console/containers?state=${TROUBLE.join(',')}`}>All that need attention</a>
                </p>
              )}
            </>
          )
        }
      </Known>
    </Section>
  );
}

function Item({ container }: { container: ListedContainer }) {
  const { sentence, detail, remedy } = container.state;
  return (
    <li>
      <States state={container.state} />
      <div class="grow">
        <a class="strong" href={`/console/containers/${container.id}`}>
          {container.name}
        </a>
        <div class="small">
          {sentence} {detail === null ? '' : shownHostsIn(detail)} <span class="dim">{remedy}</span>
        </div>
      </div>
      <a
        class="button"
        href={`/console/containers/${container.id}#health`}
        aria-label={`Solve ${container.name}`}
      >
        Solve
      </a>
    </li>
  );
}
