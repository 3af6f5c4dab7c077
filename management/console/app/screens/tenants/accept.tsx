import { useState } from 'preact/hooks';
import { api } from '../../data/api.ts';
import { refresh } from '../../data/query.ts';
import { readSession } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { TextField } from '../../parts/fields.tsx';
import { Failure } from '../../parts/states.tsx';

/** Makes the person a member by the token of an invitation. */
export function AcceptInvitation() {
  const [token, setToken] = useState('');
  const [role, setRole] = useState<string | null>(null);
  const { isBusy, error, run } = useAction();
  const accept = async () => {
    const { data } = await api.post('/invitations/accept', { body: { token: token.trim() } });
    setRole(data.role);
    setToken('');
    await readSession();
    refresh('clients', 'organisations', 'containers');
  };
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void run(accept);
      }}
    >
      <div class="form-row">
        <TextField
          label="Accept an invitation"
          value={token}
          set={setToken}
          required
          maxLength={100}
          placeholder="tgi_…"
        />
        <button type="submit" disabled={isBusy}>
          Accept
        </button>
      </div>
      {role !== null && (
        <p class="calm" role="status">
          You are a member now, with the role {role}.
        </p>
      )}
      {error !== null && <Failure error={error} />}
    </form>
  );
}
