import { api } from '../../data/api.ts';
import { usePages } from '../../data/paging.ts';
import { usePolling } from '../../data/query.ts';
import { Ago, StateMark } from '../../parts/marks.tsx';
import { Page } from '../../parts/page.tsx';
import { PagedTable } from '../../parts/paged-table.tsx';
import { Empty } from '../../parts/states.tsx';
import { imageName } from './image.tsx';
import { isActive, progressOf, ROLLOUT_POLL_MS } from './progress.tsx';

/** The rollouts of images so far, the newest first. */
export default function RolloutsScreen() {
  const pages = usePages('instance rollouts', async (cursor) => {
    const query = cursor === undefined ? {} : { cursor };
    return (await api.get('/image-rollouts', { params: { query } })).data;
  });
  const isRunning = pages.query.data?.items.some(({ status }) => isActive(status)) ?? false;
  usePolling(pages.query, isRunning ? ROLLOUT_POLL_MS : null);
  return (
    <Page
      title="Rollouts"
      sub="Another image of the tag server for many sites, wave by wave"
      actions={
        // The API runs one rollout at a time.
        !isRunning &&
        pages.query.data !== undefined && (
          <a class="button primary" href="/console/rollouts/new">
            New rollout
          </a>
        )
      }
    >
      <PagedTable
        pages={pages}
        rows={4}
        empty={
          <Empty title="No rollout yet">
            <p>A rollout changes the image of a few sites first, and stops at the first failure.</p>
            <a class="button primary" href="/console/rollouts/new">
              Plan the first one
            </a>
          </Empty>
        }
        head={
          <>
            <th scope="col">Image</th>
            <th scope="col">State</th>
            <th scope="col">Sites</th>
            <th scope="col" class="wide-only">
              By
            </th>
            <th scope="col" class="right">
              Began
            </th>
          </>
        }
        row={({ id, image, status, sites, actor, createdAt }) => (
          <tr key={id}>
            <td>
              <a class="row-link strong" href={`/console/rollouts/${id}`} data-row title={image}>
                {imageName(image)}
              </a>
            </td>
            <td>
              <StateMark of={status} />
            </td>
            <td>{progressOf(sites)}</td>
            <td class="wide-only">{actor}</td>
            <td class="right dim">
              <Ago at={createdAt} />
            </td>
          </tr>
        )}
      />
    </Page>
  );
}
