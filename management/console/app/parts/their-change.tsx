import { api } from '../data/api.ts';
import type { Versioned } from '../data/containers.ts';
import { useQuery } from '../data/query.ts';
import { ChangeTable } from './changes.tsx';
import { Ago } from './marks.tsx';
import { Known } from './states.tsx';

/** How many of the newest commits are shown at most. One more is searched for `base`. */
const MOST = 5;

/** What another person changed since `base` was read, so that a change of `base` was refused (412). */
export function TheirChange({ base: { container } }: { base: Versioned }) {
  const { id, revision } = container;
  const query = useQuery(`container since ${id} ${revision}`, async () => {
    const params = { path: { id }, query: { limit: MOST + 1 } };
    const { history } = (await api.get('/server-containers/{id}/history', { params })).data;
    const known = history.findIndex(({ commit }) => commit === revision);
    const isCut = known === -1 && history.length > MOST;
    // If the whole history doesn't have `base`, only the newest commit is certain to be later.
    const newer = isCut ? MOST : known === -1 ? 1 : known;
    return { entries: history.slice(0, newer), isCut };
  });
  return (
    <Known query={query} rows={2}>
      {({ entries, isCut }) => (
        <>
          {entries.map(({ commit, author, at, subject, changes }) => (
            <div key={commit} class="stack">
              <p>
                <span class="strong">{author}</span> changed this container meanwhile (<Ago at={at} />
                ): {subject}
              </p>
              <ChangeTable changes={changes} />
            </div>
          ))}
          {isCut && <p>The container’s history shows the earlier changes.</p>}
        </>
      )}
    </Known>
  );
}
