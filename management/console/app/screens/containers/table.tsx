import type { ListedContainer } from '../../data/containers.ts';
import { clientName } from '../../data/session.ts';
import { Ago, StateMark } from '../../parts/marks.tsx';
import { explain } from '../../text/reasons.ts';

interface Column {
  readonly name: string;
  /** What the API sorts by; none: it doesn't sort by this column. */
  readonly sort?: string;
  readonly class?: string;
}

const COLUMNS: readonly Column[] = [
  { name: 'Name', sort: 'name' },
  { name: 'Domains', class: 'wide-only' },
  { name: 'Client', class: 'wide-only' },
  { name: 'Status', sort: 'status' },
  { name: 'Health' },
  { name: 'Changed', sort: 'updatedAt', class: 'right' },
];

/** One page of containers. Each row is a link with the container's name. */
export function ContainerTable({
  containers,
  sort,
  isOld,
  onSort,
}: {
  containers: readonly ListedContainer[];
  sort: string;
  isOld: boolean;
  onSort: (sort: string) => void;
}) {
  const key = sort.replace(/^-/, '');
  const isDown = sort.startsWith('-');
  return (
    <div class="table-box" aria-busy={isOld}>
      <table class="list">
        <thead>
          <tr>
            {COLUMNS.map(({ name, sort: by, class: style }) => (
              <th
                key={name}
                scope="col"
                class={style}
                aria-sort={by === key ? (isDown ? 'descending' : 'ascending') : undefined}
              >
                {by === undefined ? (
                  name
                ) : (
                  <button
                    type="button"
                    class="sort"
                    onClick={() => onSort(by === key && !isDown ? `-${by}` : by)}
                  >
                    {name}
                  </button>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {containers.map((container) => (
            <Row key={container.id} container={container} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ container }: { container: ListedContainer }) {
  const { id, name, domains, clientId, status, health, suspended, updatedAt } = container;
  const further = domains.length - 1;
  return (
    <tr>
      <td>
        <a class="strong row-link" href={`/console/containers/${id}`} data-row>
          {name}
        </a>
      </td>
      <td class="wide-only">
        {domains[0]}
        {further > 0 && <span class="dim" title={domains.join(', ')}>{` +${further}`}</span>}
      </td>
      <td class="wide-only">{clientName(clientId)}</td>
      <td>
        <StateMark of={status} title={explain(container)?.what} />
        {suspended && <StateMark of="suspended" />}
      </td>
      <td>
        <StateMark of={health} />
      </td>
      <td class="right dim">
        <Ago at={updatedAt} />
      </td>
    </tr>
  );
}
