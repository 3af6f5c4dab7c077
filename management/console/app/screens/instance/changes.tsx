import { api } from '../../data/api.ts';
import { usePages } from '../../data/paging.ts';
import { Ago } from '../../parts/marks.tsx';
import { Page } from '../../parts/page.tsx';
import { PagedTable } from '../../parts/paged-table.tsx';
import { Empty } from '../../parts/states.tsx';

/** Every commit of the instance that concerns what the person may read. */
export default function ChangesScreen() {
  const pages = usePages('instance changes', async (cursor) => {
    const params = { query: cursor === undefined ? {} : { cursor } };
    return (await api.get('/changes', { params })).data;
  });
  return (
    <Page
      title="Changes"
      sub="Every change is a commit. To see its values or to revert it, open its container."
    >
      <PagedTable
        pages={pages}
        rows={10}
        empty={<Empty title="No commit yet" />}
        head={
          <>
            <th scope="col">Change</th>
            <th scope="col">Container</th>
            <th scope="col" class="wide-only">
              Commit
            </th>
            <th scope="col">By</th>
            <th scope="col" class="right">
              When
            </th>
          </>
        }
        row={({ commit, subject, reason, author, at, sites }) => (
          <tr key={commit}>
            <td>
              <span class="strong">{subject}</span>
              {reason !== null && <div class="small dim">{reason}</div>}
            </td>
            <td>
              {sites.map(({ siteId, containerId }) => (
                <div key={siteId}>
                  {containerId === null ? (
                    siteId
                  ) : (
                    <a href={`/console/containers/${containerId}#history`} data-row>
                      {siteId}
                    </a>
                  )}
                </div>
              ))}
            </td>
            <td class="wide-only">
              <code>{commit.slice(0, 8)}</code>
            </td>
            <td>{author}</td>
            <td class="right dim">
              <Ago at={at} />
            </td>
          </tr>
        )}
      />
    </Page>
  );
}
