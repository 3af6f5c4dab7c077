import { useLocation, useRoute } from 'preact-iso';
import {
  LOG_KINDS,
  LOG_LEVELS,
  type LogChoice,
  liveLogsAddress,
  logChoiceOf,
  searchLogs,
  type TagLine,
  type TagLinePage,
} from '../../data/container-logs.ts';
import { usePages } from '../../data/paging.ts';
import { type RequestTimes, requestTimesOf } from '../../data/requests.ts';
import { ContainerName } from '../../parts/container-picker.tsx';
import { Page } from '../../parts/page.tsx';
import { PagedTable } from '../../parts/paged-table.tsx';
import { Empty } from '../../parts/states.tsx';
import { timeZone, words } from '../../text/format.ts';
import { type ChangeAddress, Times, Typed } from './filters.tsx';
import { LogHead, LogLine } from './log-line.tsx';
import { keptSince } from './tag-lines.tsx';
import { TailView } from './tail.tsx';

/** What the tag servers of a container print: searched, or followed as it is printed. */
export default function OutputScreen() {
  const { query, path, route } = useLocation();
  const { id = '' } = useRoute().params;
  const choice = logChoiceOf(query);
  const isLive = query.view === 'live';
  const times = requestTimesOf(query);
  const change: ChangeAddress = (changes, replace = false) => {
    const next = new URLSearchParams(query);
    for (const [name, value] of Object.entries(changes)) {
      if (value) next.set(name, value);
      else next.delete(name);
    }
    const text = next.toString();
    route(`${path}${text === '' ? '' : `?${text}`}`, replace);
  };
  return (
    <Page
      title="Output of the tag servers"
      sub={
        <>
          <span>
            of{' '}
            <a href={`/console/containers/${id}`}>
              <ContainerName id={id} />
            </a>
          </span>
          <span>Without bodies and without what may be personal. Times are those of {timeZone()}.</span>
        </>
      }
      actions={
        <fieldset class="segments">
          <legend class="hidden">View</legend>
          <button type="button" aria-pressed={!isLive} onClick={() => change({ view: undefined })}>
            Search
          </button>
          <button type="button" aria-pressed={isLive} onClick={() => change({ view: 'live' })}>
            Live
          </button>
        </fieldset>
      }
    >
      <search class="filters">
        <Typed
          name="Text"
          class="grow"
          isFirst
          maxLength={200}
          value={choice.q}
          set={(q) => change({ q }, true)}
        />
        <Choice
          name="Level"
          of="Any level"
          values={LOG_LEVELS}
          value={choice.level}
          set={(level) => change({ level })}
        />
        <Choice
          name="Kind"
          of="Any kind"
          values={LOG_KINDS}
          value={choice.kind}
          set={(kind) => change({ kind })}
        />
        {!isLive && <Times times={times} change={change} />}
      </search>
      <div class="log-lines stack">
        {isLive ? (
          <TailView<TagLine>
            source={{ address: liveLogsAddress(id, choice), kind: 'log' }}
            noun="line"
            verb="printed"
            head={<LogHead />}
            row={(line) => <LogLine key={line.id} line={line} container={id} />}
          />
        ) : (
          <LogSearch id={id} choice={choice} times={times} clear={() => route(path)} />
        )}
      </div>
    </Page>
  );
}

function LogSearch({
  id,
  choice,
  times,
  clear,
}: {
  id: string;
  choice: LogChoice;
  times: RequestTimes;
  clear: () => void;
}) {
  const pages = usePages(`container-logs ${id} ${JSON.stringify([choice, times])}`, (cursor) =>
    searchLogs(id, { choice, times }, cursor),
  );
  const { query } = pages;
  const page = query.data as TagLinePage | undefined; // what the search above answers
  const isFiltered = Object.keys(choice).length > 0;
  return (
    <>
      <div class="list-head">
        <button type="button" disabled={query.isLoading} onClick={() => void query.reload()}>
          {query.isLoading ? 'Searching…' : 'Search again'}
        </button>
        <span class="grow dim small">{page !== undefined && keptSince(page.since)}</span>
      </div>
      <PagedTable
        pages={pages}
        rows={12}
        empty={
          page?.next ? (
            <Empty title="No match in the part that was searched so far">
              <button type="button" class="primary" onClick={pages.next}>
                Continue the search
              </button>
            </Empty>
          ) : (
            <Empty title={isFiltered ? 'No line matches' : 'Nothing was printed in this time'}>
              <p>Choose a longer time{isFiltered && ' or fewer filters'}.</p>
              {isFiltered && (
                <button type="button" onClick={clear}>
                  Clear the filters
                </button>
              )}
            </Empty>
          )
        }
        head={<LogHead />}
        row={(line) => <LogLine key={line.id} line={line} container={id} />}
      />
    </>
  );
}

function Choice({
  name,
  of,
  values,
  value,
  set,
}: {
  name: string;
  of: string;
  values: readonly string[];
  value: string | undefined;
  set: (value: string) => void;
}) {
  return (
    <select aria-label={name} value={value ?? ''} onChange={({ currentTarget }) => set(currentTarget.value)}>
      <option value="">{of}</option>
      {values.map((one) => (
        <option key={one} value={one}>
          {words(one)}
        </option>
      ))}
    </select>
  );
}
