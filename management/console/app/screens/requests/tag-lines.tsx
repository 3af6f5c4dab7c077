import { readRequestLogs, type TagLinePage } from '../../data/container-logs.ts';
import { usePages } from '../../data/paging.ts';
import type { EdgeRequest } from '../../data/requests.ts';
import { PagedTable } from '../../parts/paged-table.tsx';
import { Empty } from '../../parts/states.tsx';
import { absolute } from '../../text/format.ts';
import { LogHead, LogLine } from './log-line.tsx';

/** What the tags of a container printed about one of its requests. */
export function TagLines({ container, request }: { container: string; request: EdgeRequest }) {
  const { requestId, time } = request;
  const pages = usePages(`container-logs ${container} ${requestId}`, (cursor) =>
    readRequestLogs(container, { requestId, time }, cursor),
  );
  const page = pages.query.data as TagLinePage | undefined; // what the search above answers
  return (
    <section aria-labelledby="tag-lines" class="log-lines stack">
      <h3 id="tag-lines">What the tags said</h3>
      <PagedTable
        pages={pages}
        rows={2}
        empty={
          page?.next ? (
            <Empty title="Nothing in the part that was searched so far">
              <button type="button" class="primary" onClick={pages.next}>
                Continue the search
              </button>
            </Empty>
          ) : (
            <p>
              The tag server printed nothing for this request.{' '}
              <span class="dim">{page !== undefined && keptSince(page.since)}</span>
            </p>
          )
        }
        head={<LogHead />}
        row={(line) => <LogLine key={line.id} line={line} />}
      />
    </section>
  );
}

/** Since when the lines of a container are kept, as a sentence. */
export function keptSince(since: string | null): string {
  return since === null
    ? 'No line of this container is kept.'
    : `Lines of this container are kept since ${absolute(since)}.`;
}
