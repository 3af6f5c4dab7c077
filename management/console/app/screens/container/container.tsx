import { useRoute } from 'preact-iso';
import { readContainer } from '../../data/containers.ts';
import { useQuery } from '../../data/query.ts';
import { clientName, mayAct, me } from '../../data/session.ts';
import { Ago, States } from '../../parts/marks.tsx';
import { Page } from '../../parts/page.tsx';
import { Known } from '../../parts/states.tsx';
import { HandoverSection } from '../handover/handover.tsx';
import { ChecklistSection } from './checklist.tsx';
import { DangerSection } from './danger.tsx';
import { DomainsSection } from './domains/domains.tsx';
import { SameOriginSection } from './domains/same-origin.tsx';
import { HealthSection } from './health.tsx';
import { HistorySection } from './history.tsx';
import { KeysSection } from './keys/keys.tsx';
import { SettingsSection } from './settings/settings.tsx';
import { SnippetSection } from './snippet.tsx';
import { TrafficSection } from './traffic-section.tsx';
import { VerificationSection } from './verification.tsx';

const PARTS = [
  ['traffic', 'Traffic'],
  ['health', 'Health'],
  ['snippet', 'Snippet'],
  ['domains', 'Domains'],
  ['handover', 'DNS handover'],
  ['same-origin', 'Same origin'],
  ['checklist', 'Tag Manager'],
  ['verification', 'Verification'],
  ['settings', 'Settings'],
  ['keys', 'Tokens'],
  ['history', 'History'],
  ['danger', 'Danger zone'],
] as const;

type Part = (typeof PARTS)[number][0];

/** Whether this person sees the part. Before the client is known: whether the person would see it for some client. */
function hasPart(part: Part, client: string | undefined): boolean {
  if (part !== 'handover' && part !== 'danger') return true;
  const mayChange = client === undefined ? me().clients.some(({ id }) => mayAct(id)) : mayAct(client);
  return mayChange || (part === 'handover' && me().isOperator);
}

/** One container: what it does, how it is, and what changed. */
export default function ContainerScreen() {
  const { id = '' } = useRoute().params;
  const query = useQuery(`container ${id}`, () => readContainer(id));
  const name = query.data?.container.name;
  const client = query.data?.container.clientId;
  return (
    <Page
      title={name ?? 'Container'}
      sub={
        query.data ? (
          <>
            <States state={query.data.container.state} />
            <span class="dim">{clientName(query.data.container.clientId)}</span>
            <span class="dim">
              changed <Ago at={query.data.container.updatedAt} />
            </span>
          </>
        ) : (
          ' '
        )
      }
      actions={
        <>
          <a class="button" href={`/console/containers/${id}/output`}>
            Output of the tag servers
          </a>
          <a class="button" href={`/console/containers/${id}/requests`}>
            Requests
          </a>
        </>
      }
    >
      <nav class="parts" aria-label="Parts of this page">
        {PARTS.filter(([part]) => hasPart(part, client)).map(([part, name]) => (
          <a key={part} href={`#${part}`}>
            {name}
          </a>
        ))}
      </nav>
      <Known key={id} query={query} rows={12}>
        {(versioned) => (
          <>
            <TrafficSection id={id} />
            <HealthSection container={versioned.container} />
            <SnippetSection container={versioned.container} />
            <DomainsSection versioned={versioned} />
            <HandoverSection client={versioned.container.clientId} container={id} />
            <SameOriginSection versioned={versioned} />
            <ChecklistSection container={versioned.container} />
            <VerificationSection container={versioned.container} />
            <SettingsSection versioned={versioned} />
            <KeysSection versioned={versioned} />
            <HistorySection versioned={versioned} />
            <DangerSection versioned={versioned} />
          </>
        )}
      </Known>
    </Page>
  );
}
