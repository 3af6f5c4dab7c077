import { api } from '../../data/api.ts';
import { usePages } from '../../data/paging.ts';
import { Ago } from '../../parts/marks.tsx';
import { Page } from '../../parts/page.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Empty, Known } from '../../parts/states.tsx';

/** Every commit of the instance that concerns what the person may read. */
export default function ChangesScreen() {
  const { query, isFirst, next, back } = usePages('instance changes', async (cursor) => {
    const params = { query: cursor === undefined ? {} : { cursor } };
    return (await api.get('/changes', { params })).data;
  });
  return (
    <Page
      title="Changes"
      sub="Every change is a commit. Open its container to see the values, and to revert it."
    >
      <Known query={query} rows={10}>
        {({ items, next: following }) =>
          items.length === 0 ? (
            <Empty title="No commit yet" />
          ) : (
            <>
              <div class="table-box">
                <table class="list">
                  <thead>
                    <tr>
                      <th scope="col">Change</th>
                      <th scope="col">Container</th>
                      <th scope="col" class="wide-only">
                        Commit
                      </th>
                      <th scope="col">By</th>
                      <th scope="col" class="right">
                        When
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {items.map(({ commit, subject, reason, author, at, sites }) => (
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
                    ))}
                  </tbody>
                </table>
              </div>
              <Pager isFirst={isFirst} hasNext={following !== null} next={next} back={back} />
            </>
          )
        }
      </Known>
    </Page>
  );
}
