import { api } from '../../data/api.ts';
import { useQuery } from '../../data/query.ts';
import { Ago } from '../../parts/marks.tsx';
import { Page } from '../../parts/page.tsx';
import { Empty, Known } from '../../parts/states.tsx';
import { PlannedTable } from './planned.tsx';

const MOST = 200;

/** What differs from git because it was changed elsewhere. */
export default function DriftScreen() {
  const params = { query: { limit: MOST } };
  const query = useQuery('instance drift', async () => (await api.get('/drift', { params })).data);
  return (
    <Page
      title="Drift"
      sub={
        query.data ? (
          <>
            As of <Ago at={query.data.asOf} />
          </>
        ) : (
          'What was changed outside of git'
        )
      }
      actions={
        <button type="button" disabled={query.isLoading} onClick={() => void query.reload()}>
          Observe again
        </button>
      }
    >
      <Known query={query} rows={6}>
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty title="No drift">
              <p>Hosts, Cloudflare and DNS are as git describes them.</p>
            </Empty>
          ) : (
            <>
              {next !== null && <p class="notice warn">These are the first {MOST}; there are more.</p>}
              <PlannedTable items={items} />
            </>
          )
        }
      </Known>
    </Page>
  );
}
