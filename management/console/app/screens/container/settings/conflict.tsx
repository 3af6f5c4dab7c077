import { api } from '../../../data/api.ts';
import { useQuery } from '../../../data/query.ts';
import { ChangeTable } from '../../../parts/changes.tsx';
import { Ago } from '../../../parts/marks.tsx';
import { type Difference, differences, type SettingsDraft } from './draft.ts';

/** Shows what another person changed in the container meanwhile, and asks what to do with the unsaved changes here. */
export function ConflictNotice({
  id,
  before,
  theirs,
  mine,
  keep,
  discard,
}: {
  id: string;
  before: SettingsDraft;
  theirs: SettingsDraft;
  mine: readonly Difference[];
  keep: () => void;
  discard: () => void;
}) {
  const query = useQuery(`container newest ${id}`, async () => {
    const params = { path: { id }, query: { limit: 1 } };
    return (await api.get('/server-containers/{id}/history', { params })).data;
  });
  const newest = query.data?.history[0];
  const changed = differences(before, theirs);
  const both = changed.filter(({ path }) => mine.some((own) => own.path === path));
  return (
    <div class="notice warn" role="alert">
      <p class="strong">
        {newest === undefined ? 'Another person' : newest.author} changed this container while you edited it
        {newest !== undefined && (
          <>
            {' '}
            (<Ago at={newest.at} />)
          </>
        )}
      </p>
      {changed.length === 0 ? (
        <p>Their change concerns none of these settings.</p>
      ) : (
        <ChangeTable changes={changed} />
      )}
      {both.length > 0 && (
        <p>
          You both changed <code>{both.map(({ path }) => path).join(', ')}</code>: yours would replace theirs.
        </p>
      )}
      <div class="actions">
        <button type="button" class="primary" onClick={keep}>
          Put mine on top of theirs
        </button>
        <button type="button" onClick={discard}>
          Discard mine
        </button>
      </div>
    </div>
  );
}
