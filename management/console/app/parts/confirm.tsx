import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { isConflict, readContainer, type Versioned } from '../data/containers.ts';
import { readAgain } from '../data/query.ts';
import { type ChangedValue, ChangeTable } from './changes.tsx';
import { Dialog } from './dialog.tsx';
import { Failure, Skeleton } from './states.tsx';
import { TheirChange } from './their-change.tsx';

interface Plan {
  /** The fields for which the plan was made: a plan for earlier fields is ignored. */
  readonly of: string;
  readonly changes: readonly ChangedValue[];
  readonly warnings: readonly string[];
  readonly checksum?: string;
}

/** The headers with the version that a change is based on, and with its plan: the API refuses it for another one. */
export interface OfVersion {
  readonly 'if-match'?: string;
  readonly 'x-tagyard-plan'?: string;
}

/**
 * Asks before a change and, if a plan can be made, shows what it would do. With `versioned`, the API refuses the change
 * if another person has changed the container since. The dialog then shows their change, and makes the plan on top of
 * it.
 */
export function Confirm({
  title,
  verb,
  typed,
  isDanger = false,
  versioned,
  plan,
  planOf: of = '',
  act,
  close,
  children,
}: {
  title: string;
  verb: string;
  /** What the person must type first. */
  typed?: string;
  isDanger?: boolean;
  /** The container as the person saw it when they began. */
  versioned?: Versioned;
  /** The answer of the dry run. */
  plan?: (of: OfVersion) => Promise<unknown>;
  /** What the plan depends on, if the dialog has fields: the plan is made again when that changes. */
  planOf?: string;
  act: (of: OfVersion) => Promise<void>;
  close: () => void;
  children?: ComponentChildren;
}) {
  const [base, setBase] = useState(versioned);
  const [theirs, setTheirs] = useState<Versioned | null>(null);
  const [newest, setPlanned] = useState<Plan | null>(null);
  const planned = newest?.of === of ? newest : null;
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const [text, setText] = useState('');
  const latest = useRef({ plan, act });
  latest.current = { plan, act };
  const header: OfVersion = base?.etag ? { 'if-match': base.etag } : {};

  const fail = async (failure: unknown) => {
    if (base === undefined || !isConflict(failure)) {
      setError(failure);
      return;
    }
    setPlanned(null);
    await readContainer(base.container.id).then(setTheirs, setError);
  };
  useEffect(() => {
    setError(null);
    setPlanned(null);
    let isOld = false;
    latest.current.plan?.(header).then(
      (answer) => {
        if (!isOld) setPlanned(planFrom(answer, of));
      },
      (failure) => {
        if (!isOld) void fail(failure);
      },
    );
    return () => {
      isOld = true;
    };
  }, [base, of]);

  const isReady =
    theirs === null && (plan === undefined || planned !== null) && (typed === undefined || text === typed);
  const perform = async () => {
    setBusy(true);
    setError(null);
    try {
      const { checksum } = planned ?? {};
      await latest.current.act(checksum === undefined ? header : { ...header, 'x-tagyard-plan': checksum });
      // So that the next change is based on the version that this one has made.
      if (base !== undefined) await readAgain(`container ${base.container.id}`);
      close();
    } catch (failure) {
      await fail(failure);
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
          if (isReady && !isBusy) void perform();
        }}
      >
        {children}
        {plan !== undefined && planned === null && error === null && theirs === null && (
          <Skeleton rows={2} label="Planning" />
        )}
        {planned !== null && (
          <>
            <ChangeTable changes={planned.changes} />
            {planned.warnings.map((warning) => (
              <p key={warning} class="notice warn">
                {warning}
              </p>
            ))}
          </>
        )}
        {theirs !== null && base !== undefined && (
          <div class="notice warn" role="alert">
            <TheirChange base={base} />
            <p>Yours is not saved yet. Plan it again on top of theirs, or cancel to keep only theirs.</p>
          </div>
        )}
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
          {theirs === null ? (
            <button type="submit" class={isDanger ? 'danger' : 'primary'} disabled={!isReady || isBusy}>
              {isBusy ? 'Working…' : verb}
            </button>
          ) : (
            <button
              type="button"
              class="primary"
              onClick={() => {
                setBase(theirs);
                setTheirs(null);
              }}
            >
              Plan again on top of theirs
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

function planFrom(answer: unknown, of: string): Plan {
  const none = { of, changes: [], warnings: [] };
  if (typeof answer !== 'object' || answer === null || !('plan' in answer)) return none;
  return { ...none, ...(answer as { plan: Partial<Plan> }).plan }; // the answer of a dry run
}
