import { useState } from 'preact/hooks';
import { api } from '../../data/api.ts';
import { isConflict } from '../../data/containers.ts';
import { refresh } from '../../data/query.ts';
import { readSession } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { TextField } from '../../parts/fields.tsx';
import { Section } from '../../parts/page.tsx';
import { Failure } from '../../parts/states.tsx';
import { OF_KIND, type ShownTenant } from './tenant.ts';

/** Renames a client or organisation. If another person has changed it meanwhile, that is shown first. */
export function RenameSection({
  tenant: { kind, id },
  name,
  etag,
}: {
  tenant: ShownTenant;
  name: string;
  /** The version that the person sees. */
  etag: string | null;
}) {
  const [base, setBase] = useState({ name, etag });
  const [text, setText] = useState(name);
  const [theirs, setTheirs] = useState<{ name: string; etag: string | null } | null>(null);
  const { isBusy, error, run } = useAction();
  // While the person has changed nothing here, the form follows what others change.
  if (text === base.name && theirs === null && (base.name !== name || base.etag !== etag)) {
    setBase({ name, etag });
    setText(name);
  }
  const save = async () => {
    try {
      const header = base.etag === null ? {} : { 'if-match': base.etag };
      const params = { path: { id }, header };
      const answer = await api.patch(`/${kind}/{id}`, { params, body: { name: text.trim() } });
      setBase({ name: text.trim(), etag: answer.etag });
    } catch (failure) {
      if (!isConflict(failure)) throw failure;
      const now = await api.get(`/${kind}/{id}`, { params: { path: { id } } });
      setTheirs({ name: now.data.name, etag: now.etag });
      return;
    }
    refresh(kind);
    await readSession();
  };
  return (
    <Section id="rename" title="Rename">
      {theirs !== null && (
        <div class="notice warn" role="alert">
          <p class="strong">Another person changed this {OF_KIND[kind].one} while you edited it</p>
          <p>
            {theirs.name === base.name ? (
              'The name is unchanged; the members or the organisation changed.'
            ) : (
              <>
                Its name is now <ins>{theirs.name}</ins>; it was <del>{base.name}</del>.
              </>
            )}
          </p>
          <div class="actions">
            <button
              type="button"
              class="primary"
              onClick={() => {
                setBase(theirs);
                setTheirs(null);
              }}
            >
              Keep mine, then rename again
            </button>
            <button
              type="button"
              onClick={() => {
                setBase(theirs);
                setText(theirs.name);
                setTheirs(null);
              }}
            >
              Discard mine
            </button>
          </div>
        </div>
      )}
      <form
        class="form-row"
        onSubmit={(event) => {
          event.preventDefault();
          void run(save);
        }}
      >
        <TextField label="Name" value={text} set={setText} required maxLength={120} />
        <button
          type="submit"
          class="primary"
          disabled={isBusy || theirs !== null || text.trim() === '' || text.trim() === base.name}
        >
          Rename
        </button>
      </form>
      {error !== null && <Failure error={error} />}
    </Section>
  );
}
