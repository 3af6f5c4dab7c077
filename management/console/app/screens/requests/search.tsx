import { useState } from 'preact/hooks';
import { usePages } from '../../data/paging.ts';
import { usePolling } from '../../data/query.ts';
import {
  type EdgeRequest,
  exportAddress,
  type RequestChoice,
  type RequestPage,
  type RequestTimes,
  searchRequests,
} from '../../data/requests.ts';
import { PagedTable } from '../../parts/paged-table.tsx';
import { Empty } from '../../parts/states.tsx';
import { plural } from '../../text/format.ts';
import { RequestDetail } from './detail.tsx';
import { RequestHead, RequestLine } from './row.tsx';

/** Days that aren't read yet are asked for again this often, milliseconds. */
const MISSING_MS = 2_000;

/** The requests that match, the newest first, page by page. */
export function SearchView({
  filter,
  times,
  clear,
}: {
  filter: RequestChoice;
  times: RequestTimes;
  clear: () => void;
}) {
  const [shown, show] = useState<EdgeRequest | null>(null);
  const pages = usePages(`requests ${JSON.stringify([filter, times])}`, (cursor) =>
    searchRequests(filter, times, cursor),
  );
  const { query } = pages;
  const page = query.data as RequestPage | undefined; // what the search above answers
  const missing = page?.missing ?? [];
  usePolling(query, missing.length > 0 ? MISSING_MS : null);
  const hasSite = filter.container === undefined;
  return (
    <>
      <div class="list-head">
        <button type="button" disabled={query.isLoading} onClick={() => void query.reload()}>
          {query.isLoading ? 'Searching…' : 'Search again'}
        </button>
        {missing.length > 0 ? (
          <p class="grow small dim" role="status">
            Still reading the records of{' '}
            {missing.length > 2 ? plural(missing.length, 'day') : missing.join(', ')} (UTC). Export follows.
          </p>
        ) : (
          <span class="grow" />
        )}
        <Export
          filter={filter}
          times={times}
          isReady={page !== undefined && page.items.length > 0 && missing.length === 0}
        />
      </div>
      <div class="requests">
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
              <Empty title="No request matches">
                <p>Choose a longer time or fewer filters.</p>
                <button type="button" onClick={clear}>
                  Clear the filters
                </button>
              </Empty>
            )
          }
          head={<RequestHead hasSite={hasSite} />}
          // By place: rows of a day that was still being read fill the table and move no other row.
          row={(row, index) => <RequestLine key={index} row={row} hasSite={hasSite} open={show} />}
        />
      </div>
      {shown !== null && <RequestDetail row={shown} close={() => show(null)} />}
    </>
  );
}

/** All that match as a file. The browser downloads it with the session; no script sees the answer. */
function Export({
  filter,
  times,
  isReady,
}: {
  filter: RequestChoice;
  times: RequestTimes;
  isReady: boolean;
}) {
  if (!isReady) return null;
  return (
    <>
      <span class="dim small">All that match:</span>
      {(['csv', 'ndjson'] as const).map((format) => (
        <a
          key={format}
          class="button"
          download={`requests.${format}`}
          // The times of the export are those of the click, not of the rendering.
          onClick={({ currentTarget }) => {
            currentTarget.href = exportAddress(format, filter, times);
          }}
          href={exportAddress(format, filter, times)}
        >
          {format === 'csv' ? 'Export CSV' : 'Export NDJSON'}
        </a>
      ))}
    </>
  );
}
