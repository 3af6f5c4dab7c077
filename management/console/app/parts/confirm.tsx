import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type ChangedValue, ChangeTable } from './changes.tsx';
import { Dialog } from './dialog.tsx';
import { Failure, Skeleton } from './states.tsx';

/** Asks before a change; shows what it would change, where a plan can be made. */
export function Confirm({
  title,
  verb,
  typed,
  isDanger = false,
  plan,
  act,
  close,
  children,
}: {
  title: string;
  verb: string;
  /** What the person must type first. */
  typed?: string;
  isDanger?: boolean;
  /** The answer of the dry run. */
  plan?: () => Promise<unknown>;
  act: () => Promise<void>;
  close: () => void;
  children?: ComponentChildren;
}) {
  const [changes, setChanges] = useState<readonly ChangedValue[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const [text, setText] = useState('');
  const asked = useRef(plan);
  useEffect(() => {
    asked.current?.().then((answer) => setChanges(changesOf(answer)), setError);
  }, []);
  const isReady = (plan === undefined || changes !== null) && (typed === undefined || text === typed);
  const go = async () => {
    setBusy(true);
    setError(null);
    try {
      await act();
      close();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} close={close}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady && !isBusy) void go();
        }}
      >
        {children}
        {plan !== undefined && changes === null && error === null && <Skeleton rows={2} label="Planning" />}
        {changes !== null && <ChangeTable changes={changes} />}
        {error !== null && <Failure error={error} />}
        {typed !== undefined && (
          <label class="field">
            <span>
              Type <code>{typed}</code> to confirm
            </span>
            <input
              value={text}
              onInput={({ currentTarget }) => setText(currentTarget.value)}
              autoComplete="off"
              spellcheck={false}
            />
          </label>
        )}
        <div class="actions">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class={isDanger ? 'danger' : 'primary'} disabled={!isReady || isBusy}>
            {isBusy ? 'Working…' : verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function changesOf(answer: unknown): readonly ChangedValue[] {
  if (typeof answer !== 'object' || answer === null || !('plan' in answer)) return [];
  const { plan } = answer as { plan: { changes?: readonly ChangedValue[] } }; // the answer of a dry run
  return plan.changes ?? [];
}
