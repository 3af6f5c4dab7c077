import type { components } from '../../../../base/client/index.ts';
import { valueText } from '../text/format.ts';

export type ChangedValue = components['schemas']['Change'];

/** Values before and after, one line each. */
export function ChangeTable({ changes }: { changes: readonly ChangedValue[] }) {
  if (changes.length === 0) return <p class="dim">No change that the manifest shows.</p>;
  return (
    <div class="table-box">
      <table class="changes">
        <thead>
          <tr>
            <th scope="col">Setting</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {changes.map(({ path, from, to }) => (
            <tr key={path}>
              <th scope="row">
                <code>{path}</code>
              </th>
              <td class="from">
                {from === null ? <span class="dim">not set</span> : <del>{valueText(from)}</del>}
              </td>
              <td class="to">
                {to === null ? <span class="dim">removed</span> : <ins>{valueText(to)}</ins>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
