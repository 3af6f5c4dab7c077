import { useState } from 'preact/hooks';
import { api } from '../../data/api.ts';
import { usePages } from '../../data/paging.ts';
import { clientName } from '../../data/session.ts';
import { Ago } from '../../parts/marks.tsx';
import { Page } from '../../parts/page.tsx';
import { PagedTable } from '../../parts/paged-table.tsx';
import { Empty } from '../../parts/states.tsx';
import { words } from '../../text/format.ts';

/** Who sent which change, and how it was answered. */
export default function AuditScreen() {
  const [actor, setActor] = useState('');
  const filter = actor.trim();
  const pages = usePages(`audit ${filter}`, async (cursor) => {
    const of = { ...(filter === '' ? {} : { actor: filter }), ...(cursor === undefined ? {} : { cursor }) };
    return (await api.get('/audit', { params: { query: of } })).data;
  });
  return (
    <Page title="Audit" sub="Every change that was asked for, also those that were refused">
      <search class="filters">
        <input
          type="search"
          class="grow"
          data-find
          placeholder="Subject of the person or token"
          aria-label="Filter by subject"
          value={actor}
          onInput={({ currentTarget }) => setActor(currentTarget.value)}
        />
      </search>
      <PagedTable
        pages={pages}
        rows={10}
        empty={<Empty title="No changes found" />}
        head={
          <>
            <th scope="col">Action</th>
            <th scope="col">By</th>
            <th scope="col">Client</th>
            <th scope="col">Answer</th>
            <th scope="col" class="wide-only">
              Request
            </th>
            <th scope="col" class="right">
              When
            </th>
          </>
        }
        row={(one) => (
          <tr key={one.id}>
            <td>
              {one.containerId === null ? (
                words(one.action)
              ) : (
                <a href={`/console/containers/${one.containerId}`} data-row>
                  {words(one.action)}
                </a>
              )}
            </td>
            <td>{one.actor}</td>
            <td>{one.clientId === null ? <span class="dim">–</span> : clientName(one.clientId)}</td>
            <td>
              {one.status === null ? (
                <span class="dim">none</span>
              ) : (
                <span class={one.status >= 400 ? 'bad-text' : ''}>
                  {one.status} {one.code !== null && <code>{one.code}</code>}
                  {one.count > 1 && ` × ${one.count}`}
                </span>
              )}
            </td>
            <td class="wide-only">
              <code title={one.requestId}>{one.requestId.slice(0, 8)}</code>
            </td>
            <td class="right dim">
              <Ago at={one.at} />
            </td>
          </tr>
        )}
      />
    </Page>
  );
}
