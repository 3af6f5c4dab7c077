import { fetchContainers, type ListedContainer } from '../../data/containers.ts';
import { type Query, useQuery } from '../../data/query.ts';
import { StateMark } from '../../parts/marks.tsx';
import { Section } from '../../parts/page.tsx';
import { Known } from '../../parts/states.tsx';
import { explain } from '../../text/reasons.ts';

const MOST = 8;

interface Trouble {
  readonly items: readonly ListedContainer[];
  readonly hasMore: boolean;
}

/** Reads the containers with trouble. */
export function useTrouble(): Query<Trouble> {
  return useQuery('containers attention', async () => {
    const [failed, degraded] = await Promise.all([
      fetchContainers({ status: ['failed', 'verification_failed'], sort: '-updatedAt', limit: MOST }),
      fetchContainers({ health: ['degraded'], sort: '-updatedAt', limit: MOST }),
    ]);
    const all = new Map([...failed.containers, ...degraded.containers].map((one) => [one.id, one]));
    const hasMore = all.size > MOST || failed.next !== null || degraded.next !== null;
    return { items: [...all.values()].slice(0, MOST), hasMore };
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
                  <a href="/console/containers?status=failed,verification_failed">All that failed</a>{' '}
                  <a href="/console/containers?health=degraded">All that are degraded</a>
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
  const reason = explain(container);
  return (
    <li>
      <StateMark of={container.health === 'degraded' ? 'degraded' : container.status} />
      <div class="grow">
        <a class="strong" href={`/console/containers/${container.id}`}>
          {container.name}
        </a>
        <div class="small">
          {reason?.what}. <span class="dim">{reason?.fix}</span>
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
