import { shownHost } from '../../../../../base/host-name.ts';
import type { ListedContainer } from '../../data/containers.ts';
import { clientName } from '../../data/session.ts';
import { Ago, States } from '../../parts/marks.tsx';
import { isChoosable, type Selection } from './selection.ts';

interface Column {
  readonly name: string;
  /** The key by which the API sorts; absent: the list can't be sorted by this column. */
  readonly sort?: string;
  readonly class?: string;
}

const COLUMNS: readonly Column[] = [
  { name: 'Name', sort: 'name' },
  { name: 'Domains', class: 'wide-only' },
  { name: 'Client', class: 'wide-only' },
  { name: 'State', sort: 'state' },
  { name: 'Changed', sort: 'updatedAt', class: 'right wide-only' },
];

/** One page of containers. Each row is a link with the container's name. */
export function ContainerTable({
  containers,
  sort,
  isOld,
  onSort,
  selection,
}: {
  containers: readonly ListedContainer[];
  /** `null`: the person may change none of them. */
  selection: Selection | null;
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
            {selection !== null && (
              <th scope="col" class="pick">
                <PagePick containers={containers} selection={selection} />
              </th>
            )}
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
            <Row key={container.id} container={container} selection={selection} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Chooses all of the page, or none. */
function PagePick({
  containers,
  selection: { chosen, togglePage },
}: {
  containers: readonly ListedContainer[];
  selection: Selection;
}) {
  const rows = containers.filter(isChoosable);
  const number = rows.filter(({ id }) => chosen.has(id)).length;
  return (
    <input
      type="checkbox"
      aria-label="Select all on this page"
      checked={number > 0 && number === rows.length}
      indeterminate={number > 0 && number < rows.length}
      disabled={rows.length === 0}
      onChange={togglePage}
    />
  );
}

function Row({ container, selection }: { container: ListedContainer; selection: Selection | null }) {
  const { id, name, domains, clientId, state, updatedAt } = container;
  const further = domains.length - 1;
  const isChosen = selection?.chosen.has(id) ?? false;
  return (
    <tr class={isChosen ? 'chosen' : undefined}>
      {selection !== null && (
        <td class="pick">
          {isChoosable(container) && (
            <input
              type="checkbox"
              aria-label={`Select ${name}`}
              checked={isChosen}
              // With the shift key, also all rows between this one and the one that was changed last.
              onClick={({ shiftKey }) => selection.toggle(container, shiftKey)}
            />
          )}
        </td>
      )}
      <td>
        <a
          class="strong row-link"
          href={`/console/containers/${id}`}
          data-row
          onKeyDown={({ key, shiftKey }) => {
            if (key.toLowerCase() === 'x' && isChoosable(container)) selection?.toggle(container, shiftKey);
          }}
        >
          {name}
        </a>
      </td>
      <td class="wide-only">
        {shownHost(domains[0] ?? '')}
        {further > 0 && <span class="dim" title={domains.map(shownHost).join(', ')}>{` +${further}`}</span>}
      </td>
      <td class="wide-only">{clientName(clientId)}</td>
      <td>
        <States state={state} />
      </td>
      <td class="right dim wide-only">
        <Ago at={updatedAt} />
      </td>
    </tr>
  );
}
