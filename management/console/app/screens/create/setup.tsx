import { useRoute } from 'preact-iso';
import { api } from '../../data/api.ts';
import { type Container, readContainer } from '../../data/containers.ts';
import { usePolling, useQuery } from '../../data/query.ts';
import { States } from '../../parts/marks.tsx';
import { Page, Section } from '../../parts/page.tsx';
import { Known } from '../../parts/states.tsx';
import { DomainProofs } from '../container/domains/proofs.tsx';
import { SnippetSection } from '../container/snippet.tsx';
import { OperationSteps } from '../container/steps.tsx';
import { FirstVisit, Report, VerifyButton } from '../container/verification.tsx';

/** How often the first visit is looked for: it has no event. */
const POLL_MS = 2_000;

/** What follows a creation: the steps as they happen, the records, the snippet, the verification, the first visit. */
export default function SetupScreen() {
  const { id = '' } = useRoute().params;
  const query = useQuery(`container ${id}`, () => readContainer(id));
  const container = query.data?.container;
  usePolling(query, container?.firstVisitAt === null ? POLL_MS : null);
  return (
    <Page
      title={container === undefined ? 'New container' : `Set up ${container.name}`}
      sub={container === undefined ? ' ' : <States state={container.state} />}
      actions={
        <a class="button" href={`/console/containers/${id}`}>
          Open the container
        </a>
      }
    >
      <Known query={query} rows={8}>
        {({ container: known }) => <Steps container={known} />}
      </Known>
    </Page>
  );
}

function Steps({ container }: { container: Container }) {
  const { id, operation, status } = container;
  const isLive = ['active', 'verified', 'verification_failed'].includes(status);
  return (
    <>
      <Section id="steps" title="Steps">
        {operation === null ? <p class="dim">No operation runs.</p> : <OperationSteps id={operation.id} />}
      </Section>
      {container.domains.some(({ proof }) => proof !== null && proof.status !== 'proven') && (
        <Section id="records" title="DNS records to set">
          <DomainProofs container={container} />
        </Section>
      )}
      <SnippetSection container={container} />
      <Section id="verify" title="Verify">
        {isLive ? (
          <>
            <p>
              Once the snippet is in the pages, verify the container: names, certificates, loader, cookies and
              more are checked from outside.
            </p>
            <VerifyButton id={id} isFirst={status !== 'verified'} />
            <Newest id={id} />
          </>
        ) : (
          <p class="dim">Possible as soon as the container is active.</p>
        )}
      </Section>
      <Section id="visit" title="First visit">
        <FirstVisit container={container} />
      </Section>
    </>
  );
}

function Newest({ id }: { id: string }) {
  const query = useQuery(`container verifications ${id}`, async () => {
    return (await api.get('/server-containers/{id}/verifications', { params: { path: { id } } })).data;
  });
  return (
    <Known query={query} rows={1}>
      {({ verifications: [newest] }) => newest !== undefined && <Report verification={newest} isOpen />}
    </Known>
  );
}
