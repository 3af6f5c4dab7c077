import { api } from '../../data/api.ts';
import { useQuery } from '../../data/query.ts';
import { Ago } from '../../parts/marks.tsx';
import { Page } from '../../parts/page.tsx';
import { Empty, Known } from '../../parts/states.tsx';

/** How many rows are shown. */
const MOST = 200;
/** How many commits of the instance are searched for the last one of a site. */
const COMMITS = 200;

/** What differs from git because it was changed elsewhere, with the site's last change in git. */
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
          {query.isLoading ? 'Observing…' : 'Observe again'}
        </button>
      }
    >
      <Known query={query} rows={6}>
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty title="No drift">
              <p>Nothing on hosts, in Cloudflare or in DNS was changed outside of git.</p>
            </Empty>
          ) : (
            <>
              {next !== null && <p class="notice warn">These are the first {MOST}; there are more.</p>}
              <DriftTable items={items} />
            </>
          )
        }
      </Known>
    </Page>
  );
}

interface Drifted {
  readonly site: string;
  readonly target: string;
  readonly key: string;
  readonly op: string;
  readonly summary: string;
  readonly found: string | null;
  readonly held: readonly string[];
  readonly containerId: string | null;
}

const REPAIRS: Readonly<Record<string, string>> = {
  create: 'was removed outside of git',
  update: 'was changed outside of git',
};

function DriftTable({ items }: { items: readonly Drifted[] }) {
  const commits = useQuery('instance changes of drift', async () => {
    return (await api.get('/changes', { params: { query: { limit: COMMITS } } })).data.items;
  });
  const lastOf = (site: string) =>
    commits.data?.find(({ sites }) => sites.some(({ siteId }) => siteId === site));
  return (
    <div class="table-box">
      <table class="list drift">
        <thead>
          <tr>
            <th scope="col">Site</th>
            <th scope="col">What happened</th>
            <th scope="col">Git says</th>
            <th scope="col">Found</th>
            <th scope="col">Last change in git</th>
          </tr>
        </thead>
        <tbody>
          {items.map(({ site, target, key, op, summary, found, held, containerId }) => {
            const last = lastOf(site);
            return (
              <tr key={`${site} ${target} ${key}`}>
                <td>
                  {containerId === null ? (
                    site
                  ) : (
                    <a href={`/console/containers/${containerId}#history`} data-row>
                      {site}
                    </a>
                  )}
                </td>
                <td>
                  <span class="strong">{target}</span> <code>{key}</code>
                  <div class="small">
                    {REPAIRS[op] ?? op}
                    {held.length > 0 && <span class="dim">; its repair is held by {held.join(', ')}</span>}
                  </div>
                </td>
                <td>
                  <ins>{summary}</ins>
                </td>
                <td>{found === null ? <span class="dim">nothing</span> : <del>{found}</del>}</td>
                <td>
                  {last === undefined ? (
                    <span class="dim">–</span>
                  ) : (
                    <>
                      {last.author}, <Ago at={last.at} />
                      <div class="small dim">{last.subject}</div>
                    </>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
