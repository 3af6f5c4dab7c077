import { useState } from 'preact/hooks';
import { api } from '../../data/api.ts';
import { usePages } from '../../data/paging.ts';
import { refresh } from '../../data/query.ts';
import { useAction } from '../../parts/action.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { ChoiceField, TextField } from '../../parts/fields.tsx';
import { Section } from '../../parts/page.tsx';
import { PagedTable } from '../../parts/paged-table.tsx';
import { Empty, Failure } from '../../parts/states.tsx';
import { words } from '../../text/format.ts';
import { OF_KIND, type ShownTenant } from './tenant.ts';

const GIVEN_ROLES = [
  { value: 'viewer', name: 'Viewer: reads' },
  { value: 'editor', name: 'Editor: changes settings' },
  { value: 'admin', name: 'Admin: also creates and removes containers' },
  { value: 'owner', name: 'Owner: also gives ownership' },
] as const;
type GivenRole = (typeof GIVEN_ROLES)[number]['value'];

/** The people of a client or an organisation, each with the role. */
export function MembersSection({ tenant, isAllowed }: { tenant: ShownTenant; isAllowed: boolean }) {
  const { kind, id } = tenant;
  const [departing, setDeparting] = useState<string | null>(null);
  const [subject, setSubject] = useState('');
  const [role, setRole] = useState<GivenRole>('viewer');
  const { isBusy, error, run } = useAction();
  const pages = usePages(`members ${kind} ${id}`, async (cursor) => {
    const params = { path: { id }, query: { limit: 50, ...(cursor === undefined ? {} : { cursor }) } };
    return (await api.get(`/${kind}/{id}/members`, { params })).data;
  });
  const put = async (who: string, what: GivenRole) => {
    await api.put(`/${kind}/{id}/members/{subject}`, {
      params: { path: { id, subject: who } },
      body: { role: what },
    });
    refresh(`members ${kind} ${id}`);
  };
  const remove = (who: string, dryRun: boolean) =>
    api.delete(`/${kind}/{id}/members/{subject}`, {
      params: { path: { id, subject: who }, query: { dryRun: dryRun ? '1' : '0' } },
    });
  return (
    <Section id="members" title="Members">
      <PagedTable
        pages={pages}
        rows={3}
        empty={<Empty title="No member yet" />}
        head={
          <>
            <th scope="col">Subject</th>
            <th scope="col">Role</th>
            {isAllowed && (
              <th scope="col">
                <span class="hidden">Actions</span>
              </th>
            )}
          </>
        }
        row={(member) => (
          <tr key={member.subject}>
            <td class="strong">{member.subject}</td>
            <td>
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
                words(member.role)
              )}
            </td>
            {isAllowed && (
              <td class="right">
                <button
                  type="button"
                  aria-label={`Remove ${member.subject}`}
                  onClick={() => setDeparting(member.subject)}
                >
                  Remove
                </button>
              </td>
            )}
          </tr>
        )}
      />
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
          plan={async () => (await remove(departing, true)).data}
          act={async () => {
            await remove(departing, false);
            refresh(`members ${kind} ${id}`);
          }}
        >
          <p>{OF_KIND[kind].removed}</p>
        </Confirm>
      )}
    </Section>
  );
}
