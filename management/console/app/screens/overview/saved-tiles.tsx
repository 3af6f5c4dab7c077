import { fetchContainers, filterOf } from '../../data/containers.ts';
import { useQuery } from '../../data/query.ts';
import { type SavedFilter, savedFilters } from '../../data/saved-filters.ts';
import { count } from '../../text/format.ts';

/** Beyond this number, matches aren't counted. */
const MOST = 100;

/** The person's own filters of the containers, each with the number that matches now. */
export function SavedTiles() {
  const filters = savedFilters();
  if (filters.length === 0) return null;
  return (
    <ul class="tiles own" aria-label="Saved filters">
      {filters.map((filter) => (
        <Tile key={filter.name} filter={filter} />
      ))}
    </ul>
  );
}

function Tile({ filter: { name, query } }: { filter: SavedFilter }) {
  const known = useQuery(`containers saved ${query}`, async () => {
    const filter = filterOf(Object.fromEntries(new URLSearchParams(query)));
    const { containers, next } = await fetchContainers({ ...filter, limit: MOST });
    return `${count(containers.length)}${next === null ? '' : '+'}`;
  });
  return (
    <li>
      <a class="tile" href={`/console/containers?${query}`}>
        <span class="number">{known.data ?? (known.error === null ? ' ' : '?')}</span>
        <span class="dim">{name}</span>
      </a>
    </li>
  );
}
