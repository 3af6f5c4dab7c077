import { useEffect, useState } from 'preact/hooks';
import { ApiProblem } from '../../../../../../base/client/index.ts';
import { api } from '../../../data/api.ts';
import { readContainer, type Versioned } from '../../../data/containers.ts';
import { refresh } from '../../../data/query.ts';
import { mayEdit } from '../../../data/session.ts';
import { useAction } from '../../../parts/action.tsx';
import { type ChangedValue, ChangeTable } from '../../../parts/changes.tsx';
import { Section } from '../../../parts/page.tsx';
import { Failure } from '../../../parts/states.tsx';
import { ConflictNotice } from './conflict.tsx';
import { differences, isSame, patchOf, type SettingsDraft, settingsOf } from './draft.ts';
import { SettingsFields } from './fields.tsx';

interface Review {
  readonly changes: readonly ChangedValue[];
  readonly warnings: readonly string[];
  readonly checksum: string;
}

/** By container: what was typed and isn't saved, for as long as the page is open, with the version it is based on. */
const unsaved = new Map<string, { readonly base: Versioned; readonly draft: SettingsDraft }>();

/** The settings as a form. Nothing is saved before its plan was shown, and no other person's change is overwritten. */
export function SettingsSection({ versioned }: { versioned: Versioned }) {
  const { id, clientId } = versioned.container;
  const [kept] = useState(() => unsaved.get(id));
  const [base, setBase] = useState(kept?.base ?? versioned);
  /** The version that the form has followed last: after a save, `base` is newer until the container is read again. */
  const [followed, setFollowed] = useState(base);
  const [draft, setDraft] = useState(() => kept?.draft ?? settingsOf(versioned.container));
  const [newest, setNewest] = useState<{ readonly of: typeof draft; readonly review: Review } | null>(null);
  // A plan for earlier values is ignored, also one that arrives after a change.
  const review = newest?.of === draft ? newest.review : null;
  const [theirs, setTheirs] = useState<Versioned | null>(null);
  const { isBusy, error, run } = useAction();
  const before = settingsOf(base.container);
  const mine = differences(before, draft);
  const isChanged = mine.length > 0;
  useEffect(() => {
    if (isChanged) unsaved.set(id, { base, draft });
    else unsaved.delete(id);
  }, [id, base, draft, isChanged]);
  // While the person has changed nothing here, the form follows what others change.
  if (!isChanged && followed !== versioned && theirs === null) {
    setFollowed(versioned);
    setBase(versioned);
    if (!isSame(draft, settingsOf(versioned.container))) setDraft(settingsOf(versioned.container));
  }

  const send = async (dryRun: boolean) => {
    try {
      return await api.patch('/server-containers/{id}', {
        params: {
          path: { id },
          query: dryRun ? { dryRun: '1' } : {},
          header: {
            ...(base.etag === null ? {} : { 'if-match': base.etag }),
            ...(dryRun || review === null ? {} : { 'x-tagyard-plan': review.checksum }),
          },
        },
        body: patchOf(before, draft),
      });
    } catch (failure) {
      if (!(failure instanceof ApiProblem) || failure.status !== 412) throw failure;
      setNewest(null);
      setTheirs(await readContainer(id));
      return null;
    }
  };
  const plan = async () => {
    const answer = await send(true);
    // The answer of a dry run.
    if (answer !== null && 'plan' in answer.data) {
      setNewest({ of: draft, review: answer.data.plan as Review });
    }
  };
  const save = async () => {
    const answer = await send(false);
    if (answer === null || 'plan' in answer.data) return;
    setBase({ container: answer.data, etag: answer.etag });
    const saved = settingsOf(answer.data);
    // What the person has changed meanwhile is kept.
    setDraft((current) => ({ ...saved, ...merged(saved, differences(draft, current)) }));
    refresh(id, 'containers');
  };

  return (
    <Section id="settings" title="Settings">
      {theirs !== null && (
        <ConflictNotice
          id={id}
          before={before}
          theirs={settingsOf(theirs.container)}
          mine={mine}
          keep={() => {
            setBase(theirs);
            setDraft({ ...settingsOf(theirs.container), ...merged(settingsOf(theirs.container), mine) });
            setTheirs(null);
          }}
          discard={() => {
            setBase(theirs);
            setDraft(settingsOf(theirs.container));
            setTheirs(null);
          }}
        />
      )}
      <form
        class="form"
        aria-label="Settings"
        onSubmit={(event) => {
          event.preventDefault();
          void run(plan);
        }}
      >
        <SettingsFields
          draft={draft}
          set={(changes) => setDraft({ ...draft, ...changes })}
          isReadOnly={!mayEdit(clientId)}
        />
        {error !== null && <Failure error={error} />}
        {review !== null && (
          <div class="stack" role="status">
            <h3>What this changes</h3>
            <ChangeTable changes={review.changes} />
            {review.warnings.map((text) => (
              <p key={text} class="notice warn">
                {text}
              </p>
            ))}
          </div>
        )}
        {mayEdit(clientId) ? (
          <div class="actions">
            {review === null ? (
              <button type="submit" class="primary" disabled={!isChanged || isBusy || theirs !== null}>
                Review changes
              </button>
            ) : (
              <button type="button" class="primary" disabled={isBusy} onClick={() => void run(save)}>
                {isBusy ? 'Saving…' : 'Save'}
              </button>
            )}
            {isChanged && (
              <button type="button" onClick={() => setDraft(before)}>
                Discard
              </button>
            )}
          </div>
        ) : (
          <p class="dim">Your role may read the settings, not change them.</p>
        )}
      </form>
    </Section>
  );
}

/** The person's own values on top of another person's. */
function merged(theirs: ReturnType<typeof settingsOf>, mine: ReturnType<typeof differences>) {
  const result: Record<string, unknown> = {};
  for (const { path, to } of mine) {
    const [key = '', name] = path.split('.');
    if (name === undefined) result[key] = to;
    else {
      const known = result[key] ?? (key === 'features' ? theirs.features : theirs.modules);
      result[key] = { ...(known as object), [name]: to };
    }
  }
  return result;
}
