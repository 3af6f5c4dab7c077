import type { ComponentChildren, JSX } from 'preact';
import type { Paged } from '../data/paging.ts';
import { Known } from './states.tsx';

/** A table of one page of an API's list, with buttons for the other pages. `rows`: how many a skeleton shows. */
export function PagedTable<Item>({
  pages: { query, isFirst, next, back },
  rows,
  empty,
  head,
  row,
}: {
  pages: Paged<Item>;
  rows: number;
  empty: JSX.Element;
  head: ComponentChildren;
  row: (item: Item, index: number) => JSX.Element;
}) {
  return (
    <Known query={query} rows={rows}>
      {({ items, next: following }) =>
        items.length === 0 ? (
          empty
        ) : (
          <>
            <div class="table-box">
              <table class="list">
                <thead>
                  <tr>{head}</tr>
                </thead>
                <tbody>{items.map(row)}</tbody>
              </table>
            </div>
            {(!isFirst || following !== null) && (
              <nav class="pager" aria-label="Pages">
                <button type="button" disabled={isFirst} onClick={back}>
                  Previous page
                </button>
                <button type="button" disabled={following === null} onClick={next}>
                  Next page
                </button>
              </nav>
            )}
          </>
        )
      }
    </Known>
  );
}
