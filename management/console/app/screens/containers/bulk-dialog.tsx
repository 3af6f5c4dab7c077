import { useEffect, useState } from 'preact/hooks';
import type { ListedContainer } from '../../data/containers.ts';
import { refresh } from '../../data/query.ts';
import { useAction } from '../../parts/action.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { TextField } from '../../parts/fields.tsx';
import { StateMark } from '../../parts/marks.tsx';
import { Failure } from '../../parts/states.tsx';
import { count, plural, valueText } from '../../text/format.ts';
import { type BulkAction, type BulkResult, sendBulk } from './bulk-run.ts';

/** Rows that are shown; the sums count all. */
const MOST_ROWS = 200;

/** The plan of an action for each container, then what became of each. Nothing is done before the plan was shown. */
export function BulkDialog({
  action,
  containers,
  close,
}: {
  action: BulkAction;
  containers: readonly ListedContainer[];
  close: () => void;
}) {
  const [plan, setPlan] = useState<readonly BulkResult[] | null>(null);
  const [results, setResults] = useState<readonly BulkResult[] | null>(null);
  const [answered, setAnswered] = useState(0);
  const [typed, setTyped] = useState('');
  const { isBusy, error, run } = useAction();
  const names = new Map(containers.map(({ id, name }) => [id, name]));
  const planned = (plan ?? []).filter((one) => isPlanned(action, one));
  const refused = (results ?? []).filter(({ done }) => !done);
  const send = async (ids: readonly string[], of: typeof plan) => {
    setAnswered(0);
    return await sendBulk(action, ids, { plan: of, onDone: setAnswered });
  };
  const makePlan = async (ids: readonly string[]) => {
    setPlan(null);
    setResults(null);
    setPlan(await send(ids, null));
  };
  const perform = async (ids: readonly string[]) => {
    setResults(await send(ids, plan ?? []));
    refresh('container');
  };
  const planAll = () => void run(() => makePlan([...names.keys()]));
  useEffect(planAll, []);
  const isSure = !action.isDanger || typed === String(planned.length);
  const label =
    plan === null ? action.button : isBusy ? 'Working…' : `${action.button} ${count(planned.length)}`;
  const total = plan === null ? containers.length : planned.length;
  return (
    <Dialog title={`${action.name} · ${plural(containers.length, 'container')}`} close={close}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          if (isSure && planned.length > 0) void run(() => perform(planned.map(({ id }) => id)));
        }}
      >
        {isBusy && (
          <p role="status">
            <progress max={total} value={answered} aria-label={plan === null ? 'Planned' : 'Done'} />{' '}
            {count(answered)} of {count(total)} {plan === null ? 'planned' : 'done'}
          </p>
        )}
        {results === null && plan !== null && (
          <>
            <PlanSums action={action} plan={plan} />
            <Items items={plan} names={names} action={action} />
          </>
        )}
        {results !== null && (
          <>
            <p class={refused.length === 0 ? 'notice good' : 'notice warn'} role="status">
              {plural(results.length - refused.length, 'container')} done
              {refused.length > 0 && `, ${count(refused.length)} refused`}
            </p>
            <Items items={results} names={names} action={action} isDone />
          </>
        )}
        {error !== null && <Failure error={error} {...(plan === null ? { retry: planAll } : {})} />}
        {results === null && action.isDanger && planned.length > 0 && (
          <TextField
            label={`Type ${planned.length} to confirm`}
            hint="The number of containers that this changes"
            value={typed}
            set={setTyped}
          />
        )}
        <div class="actions">
          <button type="button" onClick={close}>
            {results === null ? 'Cancel' : 'Close'}
          </button>
          {results === null ? (
            <button
              type="submit"
              class={action.isDanger ? 'danger' : 'primary'}
              disabled={isBusy || planned.length === 0 || !isSure}
            >
              {label}
            </button>
          ) : (
            refused.length > 0 && (
              <button
                type="button"
                class="primary"
                disabled={isBusy}
                onClick={() => void run(() => makePlan(refused.map(({ id }) => id)))}
              >
                Plan the {count(refused.length)} refused again
              </button>
            )
          )}
        </div>
      </form>
    </Dialog>
  );
}

/** Whether the action has something to do for this container. */
function isPlanned({ isAlways = false }: BulkAction, { done, changes }: BulkResult): boolean {
  return done && (isAlways || changes.length > 0);
}

function PlanSums({ action, plan }: { action: BulkAction; plan: readonly BulkResult[] }) {
  const planned = plan.filter((one) => isPlanned(action, one)).length;
  const refused = plan.filter(({ done }) => !done).length;
  const same = plan.length - planned - refused;
  return (
    <p>
      <span class="strong">{plural(planned, 'container')}</span>{' '}
      {action.isAlways ? 'will be processed' : 'will change'}
      {same > 0 && `, ${count(same)} already as wanted`}
      {refused > 0 && `, ${count(refused)} refused`}.
    </p>
  );
}

function Items({
  items,
  names,
  action,
  isDone = false,
}: {
  items: readonly BulkResult[];
  names: ReadonlyMap<string, string>;
  action: BulkAction;
  isDone?: boolean;
}) {
  const rank = (one: BulkResult) => (!one.done ? 0 : isPlanned(action, one) ? 1 : 2);
  const sorted = items.toSorted((a, b) => rank(a) - rank(b));
  return (
    <>
      <div class="table-box bulk-items">
        <table>
          <thead>
            <tr>
              <th scope="col">Container</th>
              <th scope="col">{isDone ? 'Outcome' : 'Plan'}</th>
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, MOST_ROWS).map((one) => (
              <tr key={one.id}>
                <th scope="row">{names.get(one.id)}</th>
                <td>
                  <Outcome one={one} action={action} isDone={isDone} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {sorted.length > MOST_ROWS && (
        <p class="dim small">
          The first {count(MOST_ROWS)} of {count(sorted.length)} are listed, the refused ones first.
        </p>
      )}
    </>
  );
}

function Outcome({ one, action, isDone }: { one: BulkResult; action: BulkAction; isDone: boolean }) {
  if (one.problem !== null) {
    return (
      <span class="bad-text">
        {one.problem.text} {one.problem.code !== null && <code>{one.problem.code}</code>}
      </span>
    );
  }
  if (isDone) return <StateMark of="succeeded" />;
  if (one.changes.length === 0) {
    return <span class="dim">{action.isAlways ? 'No value changes' : 'Already as wanted'}</span>;
  }
  return (
    <ul class="small">
      {one.changes.map(({ path, from, to }) => (
        <li key={path}>
          <code>{path}</code> {valueText(from)} → <span class="strong">{valueText(to)}</span>
        </li>
      ))}
    </ul>
  );
}
