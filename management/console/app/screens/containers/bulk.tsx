import { useState } from 'preact/hooks';
import { api } from '../../data/api.ts';
import type { ListFilter } from '../../data/containers.ts';
import { useQuery } from '../../data/query.ts';
import { mayAct } from '../../data/session.ts';
import { Failure } from '../../parts/states.tsx';
import { count, plural } from '../../text/format.ts';
import { BulkDialog } from './bulk-dialog.tsx';
import type { BulkAction } from './bulk-run.ts';
import type { Selection } from './selection.ts';

const ACTIONS: readonly BulkAction[] = [
  { key: 'verify', name: 'Verify', button: 'Verify', verb: 'verify', isAlways: true },
  { key: 'suspend', name: 'Suspend changes', button: 'Suspend', verb: 'suspend', body: {} },
  {
    key: 'off',
    name: 'Switch serving off',
    button: 'Switch off',
    verb: 'suspend',
    body: { serving: false },
    isDanger: true,
  },
  { key: 'resume', name: 'Resume', button: 'Resume', verb: 'resume' },
  {
    key: 'protect',
    name: 'Protect from removal',
    button: 'Protect',
    verb: 'protect',
    body: { protect: true },
  },
  {
    key: 'unprotect',
    name: 'End the protection',
    button: 'End it for',
    verb: 'protect',
    body: { protect: false },
  },
  { key: 'restore', name: 'Restore', button: 'Restore', verb: 'restore', isAlways: true },
  { key: 'remove', name: 'Remove', button: 'Remove', verb: 'remove', isDanger: true },
];

/** How many are chosen, and what can be done with them. */
export function BulkBar({
  selection,
  filter,
  hasMore,
}: {
  selection: Selection;
  filter: ListFilter;
  /** Whether the filter has more pages than the one that is shown. */
  hasMore: boolean;
}) {
  const { chosen, isAll, reading, error, chooseAll, clear } = selection;
  const [key, setKey] = useState('');
  const [action, setAction] = useState<BulkAction | null>(null);
  const plugins = useQuery('plugins', async () => (await api.get('/plugins')).data);
  const switches = (plugins.data?.items ?? []).flatMap(({ flag, title }): BulkAction[] =>
    flag === null
      ? []
      : [true, false].map((isOn) => ({
          key: `${flag} ${isOn}`,
          name: `${isOn ? 'Switch on' : 'Switch off'} ${title}`,
          button: isOn ? 'Switch on for' : 'Switch off for',
          verb: 'change',
          body: { features: { [flag]: isOn } },
        })),
  );
  // A person who may only edit gets only the switches.
  const actions = [...chosen.values()].some(({ clientId }) => mayAct(clientId)) ? ACTIONS : [];
  const known = [...actions, ...switches].find((one) => one.key === key);
  return (
    <section class="bulk" aria-label="Selected containers">
      <p role="status" class="grow">
        <span class="strong">{isAll ? `All ${count(chosen.size)} that match` : count(chosen.size)}</span>{' '}
        selected
      </p>
      {hasMore && !isAll && (
        <button
          type="button"
          class="quiet"
          disabled={reading !== null}
          onClick={() => void chooseAll(filter)}
        >
          {reading === null ? 'Select all that match' : `Reading ${plural(reading, 'container')}…`}
        </button>
      )}
      <form
        class="bulk-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (known !== undefined) setAction(known);
        }}
      >
        <select
          aria-label="Action"
          required
          value={key}
          onChange={({ currentTarget }) => setKey(currentTarget.value)}
        >
          <option value="">Choose an action</option>
          {actions.length > 0 && (
            <optgroup label="Containers">
              {actions.map((one) => (
                <option key={one.key} value={one.key}>
                  {one.name}
                </option>
              ))}
            </optgroup>
          )}
          {switches.length > 0 && (
            <optgroup label="Plugins">
              {switches.map((one) => (
                <option key={one.key} value={one.key}>
                  {one.name}
                </option>
              ))}
            </optgroup>
          )}
        </select>
        <button type="submit" class="primary" disabled={known === undefined}>
          Plan…
        </button>
        <button type="button" class="quiet" onClick={clear}>
          Clear
        </button>
      </form>
      {error !== null && <Failure error={error} />}
      {action !== null && (
        <BulkDialog action={action} containers={[...chosen.values()]} close={() => setAction(null)} />
      )}
    </section>
  );
}
