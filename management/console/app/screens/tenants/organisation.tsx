import { useRoute } from 'preact-iso';
import { api } from '../../data/api.ts';
import { usePages } from '../../data/paging.ts';
import { useQuery } from '../../data/query.ts';
import { me } from '../../data/session.ts';
import { StateMark } from '../../parts/marks.tsx';
import { Page, Section } from '../../parts/page.tsx';
import { PagedTable } from '../../parts/paged-table.tsx';
import { Empty, Known } from '../../parts/states.tsx';
import { words } from '../../text/format.ts';
import { InvitationsSection } from './invitations.tsx';
import { MembersSection } from './members.tsx';
import { RenameSection } from './rename.tsx';

/** An organisation: its clients and its people. */
export default function OrganisationScreen() {
  const { id = '' } = useRoute().params;
  const query = useQuery(`organisations ${id}`, async () => {
    const { data, etag } = await api.get('/organisations/{id}', { params: { path: { id } } });
    return { ...data, etag };
  });
  const { data } = query;
  const isAllowed = me().isOperator || data?.role === 'owner' || data?.role === 'admin';
  const tenant = { kind: 'organisations', id } as const;
  return (
    <Page
      title={data?.name ?? 'Organisation'}
      sub={
        data === undefined
          ? ' '
          : data.role === null
            ? 'Organisation'
            : `Organisation · your role: ${words(data.role)}`
      }
    >
      <Known key={id} query={query} rows={8}>
        {({ name, etag }) => (
          <>
            <ClientsOfOrganisation id={id} />
            <MembersSection tenant={tenant} isAllowed={isAllowed} />
            {isAllowed && <InvitationsSection tenant={tenant} />}
            {isAllowed && <RenameSection tenant={tenant} name={name} etag={etag} />}
          </>
        )}
      </Known>
    </Page>
  );
}

function ClientsOfOrganisation({ id }: { id: string }) {
  const pages = usePages(`organisations ${id} clients`, async (cursor) => {
    const params = {
      path: { id },
      query: { archived: '1' as const, ...(cursor === undefined ? {} : { cursor }) },
    };
    return (await api.get('/organisations/{id}/clients', { params })).data;
  });
  return (
    <Section id="clients" title="Clients">
      <PagedTable
        pages={pages}
        rows={3}
        empty={
          <Empty title="No client yet">
            <p>Operators add clients; owners and admins can create them by the API.</p>
          </Empty>
        }
        head={
          <>
            <th scope="col">Name</th>
            <th scope="col">State</th>
            <th scope="col" class="right">
              <span class="hidden">Containers</span>
            </th>
          </>
        }
        row={({ id: client, name, archivedAt }) => (
          <tr key={client}>
            <td>
              <a class="strong" href={`/console/clients/${client}`} data-row>
                {name}
              </a>
            </td>
            <td>
              <StateMark of={archivedAt === null ? 'active' : 'archived'} />
            </td>
            <td class="right">
              <a href={`/console/containers?client=${client}`} aria-label={`Containers of ${name}`}>
                Containers
              </a>
            </td>
          </tr>
        )}
      />
    </Section>
  );
}
