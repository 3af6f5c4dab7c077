import { useRoute } from 'preact-iso';
import { api } from '../../data/api.ts';
import { useQuery } from '../../data/query.ts';
import { mayAct, me } from '../../data/session.ts';
import { Page } from '../../parts/page.tsx';
import { Known } from '../../parts/states.tsx';
import { HandoverSection } from '../handover/handover.tsx';
import { InvitationsSection } from './invitations.tsx';
import { MembersSection } from './members.tsx';
import { RenameSection } from './rename.tsx';

/** A client and its people. */
export default function ClientScreen() {
  const { id = '' } = useRoute().params;
  const query = useQuery(`clients ${id}`, async () => {
    const { data, etag } = await api.get('/clients/{id}', { params: { path: { id } } });
    return { ...data, etag };
  });
  const organisation = query.data?.organisation ?? null;
  const tenant = { kind: 'clients', id } as const;
  const isAllowed = mayAct(id) || me().isOperator;
  return (
    <Page
      title={query.data?.name ?? 'Client'}
      sub={
        organisation === null ? (
          'Client'
        ) : (
          <>
            Client of <a href={`/console/organisations/${organisation}`}>{organisationName(organisation)}</a>
          </>
        )
      }
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
      <Known key={id} query={query} rows={6}>
        {({ name, etag }) => (
          <>
            <MembersSection tenant={tenant} isAllowed={isAllowed} />
            {isAllowed && <InvitationsSection tenant={tenant} />}
            <HandoverSection client={id} />
            {isAllowed && <RenameSection tenant={tenant} name={name} etag={etag} />}
          </>
        )}
      </Known>
    </Page>
  );
}

function organisationName(id: string): string {
  return me().organisations.find((one) => one.id === id)?.name ?? 'an organisation';
}
