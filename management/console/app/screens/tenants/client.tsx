import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import { api } from '../../data/api.ts';
import { refresh, useQuery } from '../../data/query.ts';
import { mayAct, me } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { ChoiceField, TextField } from '../../parts/fields.tsx';
import { Page, Section } from '../../parts/page.tsx';
import { Failure, Known } from '../../parts/states.tsx';
import { words } from '../../text/format.ts';
import { HandoverSection } from '../handover/handover.tsx';
import { InvitationsSection } from './invitations.tsx';

const GIVEN_ROLES = [
  { value: 'viewer', name: 'Viewer: reads' },
  { value: 'editor', name: 'Editor: changes settings' },
  { value: 'admin', name: 'Admin: does everything with containers' },
  { value: 'owner', name: 'Owner: also gives ownership' },
] as const;
type GivenRole = (typeof GIVEN_ROLES)[number]['value'];

/** A client and its people. */
export default function ClientScreen() {
  const { id = '' } = useRoute().params;
  const query = useQuery(
    `clients ${id}`,
    async () => (await api.get('/clients/{id}', { params: { path: { id } } })).data,
  );
  return (
    <Page
      title={query.data?.name ?? 'Client'}
      actions={
        <>
          <a class="button" href={`/console/usage?client=${id}`}>
            Its usage
          </a>
          <a class="button" href={`/console/containers?client=${id}`}>
            Its containers
          </a>
        </>
      }
    >
      <Members id={id} />
      <InvitationsSection id={id} />
      <HandoverSection client={id} />
    </Page>
  );
}

function Members({ id }: { id: string }) {
  const [departing, setDeparting] = useState<string | null>(null);
  const [subject, setSubject] = useState('');
  const [role, setRole] = useState<GivenRole>('viewer');
  const { isBusy, error, run } = useAction();
  const query = useQuery(`members ${id}`, async () => {
    return (await api.get('/clients/{id}/members', { params: { path: { id }, query: { limit: 200 } } })).data;
  });
  const isAllowed = mayAct(id) || me().isOperator;
  const put = async (who: string, what: GivenRole) => {
    await api.put('/clients/{id}/members/{subject}', {
      params: { path: { id, subject: who } },
      body: { role: what },
    });
    refresh(id);
  };
  return (
    <Section id="members" title="Members">
      <Known query={query} rows={3}>
        {({ items }) => (
          <ul class="rows">
            {items.map((member) => (
              <li key={member.subject}>
                <span class="grow strong">{member.subject}</span>
                {isAllowed ? (
                  <select
                    aria-label={`Role of ${member.subject}`}
                    value={member.role}
                    disabled={isBusy}
                    onChange={({ currentTarget }) =>
                      void run(() => put(member.subject, currentTarget.value as GivenRole))
                    }
                  >
                    {GIVEN_ROLES.map(({ value }) => (
                      <option key={value} value={value}>
                        {words(value)}
                      </option>
                    ))}
                  </select>
                ) : (
                  <span>{words(member.role)}</span>
                )}
                {isAllowed && (
                  <button
                    type="button"
                    aria-label={`Remove ${member.subject}`}
                    onClick={() => setDeparting(member.subject)}
                  >
                    Remove
                  </button>
                )}
              </li>
            ))}
          </ul>
        )}
      </Known>
      {error !== null && <Failure error={error} />}
      {isAllowed && (
        <form
          class="form-row"
          onSubmit={(event) => {
            event.preventDefault();
            void run(async () => {
              await put(subject.trim(), role);
              setSubject('');
            });
          }}
        >
          <TextField
            label="Add a member"
            hint="The subject (sub) at your identity provider"
            value={subject}
            set={setSubject}
            required
          />
          <ChoiceField label="Role" value={role} of={GIVEN_ROLES} set={setRole} />
          <button type="submit" disabled={isBusy}>
            Add
          </button>
        </form>
      )}
      {departing !== null && (
        <Confirm
          title={`Remove ${departing}?`}
          verb="Remove"
          isDanger
          close={() => setDeparting(null)}
          act={async () => {
            await api.delete('/clients/{id}/members/{subject}', {
              params: { path: { id, subject: departing } },
            });
            refresh(id);
          }}
        >
          <p>This person can no longer read the client’s containers.</p>
        </Confirm>
      )}
    </Section>
  );
}
