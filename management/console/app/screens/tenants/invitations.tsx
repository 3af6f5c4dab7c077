import { useState } from 'preact/hooks';
import { api } from '../../data/api.ts';
import { refresh, useQuery } from '../../data/query.ts';
import { useAction } from '../../parts/action.tsx';
import { ChoiceField, TextField } from '../../parts/fields.tsx';
import { Ago, Code } from '../../parts/marks.tsx';
import { Section } from '../../parts/page.tsx';
import { Failure, Known } from '../../parts/states.tsx';
import { words } from '../../text/format.ts';
import type { ShownTenant } from './tenant.ts';

const OFFERED = ['viewer', 'editor', 'admin'] as const;

/** Invitations that can still be accepted. */
export function InvitationsSection({ tenant: { kind, id } }: { tenant: ShownTenant }) {
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<(typeof OFFERED)[number]>('viewer');
  const [made, setMade] = useState<string | null>(null);
  const { isBusy, error, run } = useAction();
  const query = useQuery(`invitations ${kind} ${id}`, async () => {
    return (await api.get(`/${kind}/{id}/invitations`, { params: { path: { id } } })).data;
  });
  const invite = async () => {
    const { data } = await api.post(`/${kind}/{id}/invitations`, {
      params: { path: { id } },
      body: { role, ...(email.trim() === '' ? {} : { email: email.trim() }) },
    });
    setMade(data.token);
    setEmail('');
    refresh(`invitations ${kind} ${id}`);
  };
  const revoke = async (invitation: string) => {
    await api.delete(`/${kind}/{id}/invitations/{invitation}`, { params: { path: { id, invitation } } });
    refresh(`invitations ${kind} ${id}`);
  };
  return (
    <Section id="invitations" title="Invitations">
      <Known query={query} rows={1}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="dim">None is open.</p>
          ) : (
            <ul class="rows">
              {items.map((one) => (
                <li key={one.id}>
                  <span class="grow">{one.email ?? 'without address'}</span>
                  <span>{words(one.role)}</span>
                  <span class="dim">
                    ends <Ago at={one.expiresAt} />
                  </span>
                  <button type="button" disabled={isBusy} onClick={() => void run(() => revoke(one.id))}>
                    Revoke
                  </button>
                </li>
              ))}
            </ul>
          )
        }
      </Known>
      {made !== null && (
        <div class="notice good">
          <p>Send this token to the person. It is shown only now.</p>
          <Code text={made} what="invitation token" />
        </div>
      )}
      <form
        class="form-row"
        onSubmit={(event) => {
          event.preventDefault();
          void run(invite);
        }}
      >
        <TextField
          label="E-mail (optional)"
          type="email"
          value={email}
          set={setEmail}
          placeholder="anna@agency.example"
        />
        <ChoiceField
          label="Role"
          value={role}
          of={OFFERED.map((value) => ({ value, name: words(value) }))}
          set={setRole}
        />
        <button type="submit" disabled={isBusy}>
          Invite
        </button>
      </form>
      {error !== null && <Failure error={error} />}
    </Section>
  );
}
