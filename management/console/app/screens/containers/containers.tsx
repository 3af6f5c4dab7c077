import { useLocation } from 'preact-iso';
import { fetchContainers, fetchCounts, filterOf } from '../../data/containers.ts';
import { useQuery } from '../../data/query.ts';
import { mayAct, mayEdit, me } from '../../data/session.ts';
import { shownClient } from '../../data/shown-client.ts';
import { Page } from '../../parts/page.tsx';
import { Empty, Known } from '../../parts/states.tsx';
import { plural } from '../../text/format.ts';
import { BulkBar } from './bulk.tsx';
import { Filters } from './filters.tsx';
import { filterText, SavedFilters } from './saved.tsx';
import { useSelection } from './selection.ts';
import { ContainerTable } from './table.tsx';

const PAGE_SIZE = 50;

/** All containers. Search, filters and page are in the address, so that a link shows the same to another person. */
export function ContainersScreen() {
  const { query, route } = useLocation();
  const client = query.client ?? shownClient.value;
  const filter = filterOf({ ...query, client });
  const key = JSON.stringify(filter);
  const list = useQuery(`containers list ${key}`, () => fetchContainers({ ...filter, limit: PAGE_SIZE }));
  const counts = useQuery(`containers counts ${filter.client ?? ''}`, () => fetchCounts(filter.client));
  const selection = useSelection(filterText({ ...query, client, sort: '' }), list.data?.containers ?? []);
  const mayCreate = me().clients.some(({ id }) => mayAct(id));
  const mayChange = me().clients.some(({ id }) => mayEdit(id));
  const change = (changes: Readonly<Record<string, string | undefined>>, replace = false) => {
    const next = new URLSearchParams(query);
    // Another filter begins at the first page.
    next.delete('cursor');
    for (const [name, value] of Object.entries(changes)) {
      if (value) next.set(name, value);
      else next.delete(name);
    }
    const text = next.toString();
    route(`/console/containers${text === '' ? '' : `?${text}`}`, replace);
  };
  const isFiltered = client !== '' || 'q' in query || 'state' in query;
  return (
    <Page
      title="Containers"
      sub={counts.data ? plural(counts.data.total, 'container') : ' '}
      actions={
        mayCreate && (
          <a class="button primary" href="/console/containers/new">
            New container
          </a>
        )
      }
    >
      <Filters query={query} change={change} />
      <SavedFilters query={query} />
      <Known query={list} rows={10}>
        {({ containers, next }) =>
          containers.length === 0 ? (
            isFiltered ? (
              <Empty title="No container matches">
                <a
                  class="button"
                  href="/console/containers"
                  onClick={() => {
                    shownClient.value = '';
                  }}
                >
                  Clear the filters
                </a>
              </Empty>
            ) : (
              <Empty title="No container yet">
                {mayCreate ? (
                  <a class="button primary" href="/console/containers/new">
                    Create the first one
                  </a>
                ) : (
                  <p>An owner or admin of a client can create one.</p>
                )}
              </Empty>
            )
          ) : (
            <>
              <ContainerTable
                containers={containers}
                selection={mayChange ? selection : null}
                sort={filter.sort ?? '-createdAt'}
                isOld={list.isLoading}
                onSort={(sort) => change({ sort })}
              />
              <nav class="pager" aria-label="Pages">
                {filter.cursor !== undefined && (
                  <button type="button" onClick={() => change({ cursor: undefined })}>
                    First page
                  </button>
                )}
                {next !== null && (
                  <button type="button" onClick={() => change({ cursor: next })}>
                    Next page
                  </button>
                )}
              </nav>
              {selection.chosen.size > 0 && (
                <BulkBar
                  selection={selection}
                  filter={{ ...filter, cursor: undefined }}
                  hasMore={next !== null || filter.cursor !== undefined}
                />
              )}
            </>
          )
        }
      </Known>
    </Page>
  );
}
