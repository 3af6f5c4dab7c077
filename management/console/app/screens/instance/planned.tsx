import { StateMark } from '../../parts/marks.tsx';

interface Planned {
  readonly site: string;
  readonly target: string;
  readonly key: string;
  readonly op: string;
  readonly summary: string;
  readonly drift: boolean;
  readonly found: string | null;
  readonly held: readonly string[];
  readonly containerId?: string | null;
}

/** Changes of a plan or drift, with what holds each of them. */
export function PlannedTable({ items }: { items: readonly Planned[] }) {
  return (
    <div class="table-box">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Site</th>
            <th scope="col">Resource</th>
            <th scope="col">Change</th>
            <th scope="col">Held by</th>
          </tr>
        </thead>
        <tbody>
          {items.map(({ site, target, key, op, summary, drift, found, held, containerId }) => (
            <tr key={`${target} ${key} ${op}`}>
              <td>
                {containerId ? (
                  <a href={`/console/containers/${containerId}`} data-row>
                    {site}
                  </a>
                ) : (
                  site
                )}
              </td>
              <td>
                {target} <code>{key}</code>
              </td>
              <td>
                {op} <span class="dim">{summary}</span>
                {drift && <StateMark of="drifted" title="Changed outside of git" />}
                {found !== null && (
                  <div class="small dim">
                    Found: <code>{found}</code>
                  </div>
                )}
              </td>
              <td>{held.length === 0 ? <span class="dim">nothing</span> : held.join(', ')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
