import { shownHost } from '../../../../../base/host-name.ts';
import { DayBar } from '../../charts/day-bar.tsx';
import type { ListedContainer } from '../../data/containers.ts';
import { clientName } from '../../data/session.ts';
import { Ago, StateMark } from '../../parts/marks.tsx';
import { count, percent } from '../../text/format.ts';
import { stateWords } from '../../text/status.ts';
import { isChoosable, type Selection } from './selection.ts';

interface Column {
  readonly name: string;
  /** The key by which the API sorts; absent: the list can't be sorted by this column. */
  readonly sort?: string;
  readonly class?: string;
}

const COLUMNS: readonly Column[] = [
  { name: 'Name', sort: 'name', class: 'name' },
  { name: 'Domain', sort: 'domain', class: 'domain' },
  { name: 'State', sort: 'state', class: 'state-of' },
  { name: 'Last 24 hours', class: 'day' },
  { name: 'Requests', sort: 'requests', class: 'right sum' },
  { name: 'Errors', sort: 'errors', class: 'right share' },
  { name: 'Last visit', sort: 'lastVisit', class: 'right visit' },
];

/** What is sorted from its greatest value on first. */
const GREATEST_FIRST = ['requests', 'errors', 'lastVisit'];

function nextSort(by: string, sort: string): string {
  const first = GREATEST_FIRST.includes(by) ? `-${by}` : by;
  return sort === first ? (first === by ? `-${by}` : by) : first;
}

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
      <table class="list fixed">
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
                  <button type="button" class="sort" onClick={() => onSort(nextSort(by, sort))}>
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
  const { id, name, domains, clientId, state, traffic } = container;
  const further = domains.length - 1;
  const shown = domains.map(shownHost);
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
      <td class="name">
        <a
          class="strong row-link"
          href={`/console/containers/${id}`}
          title={`${name}, ${clientName(clientId)}`}
          data-row
          onKeyDown={({ key, shiftKey }) => {
            if (key.toLowerCase() === 'x' && isChoosable(container)) selection?.toggle(container, shiftKey);
          }}
        >
          {name}
        </a>
      </td>
      <td class="domain dim" title={shown.join(', ')}>
        {shown[0]}
        {further > 0 && ` +${further}`}
      </td>
      <td class="state-of">
        <StateMark of={state.name} title={[state.sentence, ...state.also.map(stateWords)].join(' · ')} />
      </td>
      <td class="day">{traffic !== null && <DayBar hours={traffic.hours} />}</td>
      <td class="right sum">{traffic === null ? '–' : count(traffic.requests)}</td>
      <td class="right share">
        {traffic === null || traffic.requests === 0 ? '–' : percent(traffic.errors / traffic.requests)}
      </td>
      <td class="right dim visit">
        {traffic === null || traffic.lastVisitAt === null ? '–' : <Ago at={traffic.lastVisitAt} />}
      </td>
    </tr>
  );
}
