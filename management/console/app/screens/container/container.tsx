import { useEffect } from 'preact/hooks';
import { useLocation, useRoute } from 'preact-iso';
import { readContainer, type Versioned } from '../../data/containers.ts';
import { useQuery } from '../../data/query.ts';
import { clientName, mayAct, me } from '../../data/session.ts';
import {
  type ContainerTab,
  ContainerTabs,
  tabNamed,
  tabOfPart,
  tabPath,
} from '../../parts/container-tabs.tsx';
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
import { Sentence } from './sentence.tsx';
import { SettingsSection } from './settings/settings.tsx';
import { SnippetSection } from './snippet.tsx';
import { TrafficSection } from './traffic-section.tsx';
import { VerificationSection } from './verification.tsx';

/** One container: in a sentence what it does or what it lacks, and the parts of one tab. */
export default function ContainerScreen() {
  const { params } = useRoute();
  const { route } = useLocation();
  const { id = '' } = params;
  const tab = tabNamed(params.tab);
  const query = useQuery(`container ${id}`, () => readContainer(id));
  const container = query.data?.container;
  useEffect(() => {
    // An address may name a part that is on another tab.
    const part = location.hash.slice(1);
    const of = tabOfPart(part);
    if (of !== undefined && of !== tab) route(`${tabPath(id, of)}#${part}`, true);
  }, [id, tab]);
  return (
    <Page
      title={container?.name ?? 'Container'}
      sub={
        container ? (
          <>
            <States state={container.state} />
            <span class="dim">{clientName(container.clientId)}</span>
            <span class="dim">
              changed <Ago at={container.updatedAt} />
            </span>
          </>
        ) : (
          ' '
        )
      }
    >
      <div class="stuck">
        <Sentence container={container} />
        <ContainerTabs id={id} current={tab} />
      </div>
      <Known key={`${id} ${tab}`} query={query} rows={12}>
        {(versioned) => <Parts tab={tab} versioned={versioned} />}
      </Known>
    </Page>
  );
}

function Parts({ tab, versioned }: { tab: ContainerTab; versioned: Versioned }) {
  const { container } = versioned;
  const { id, clientId } = container;
  if (tab === 'domains') {
    return (
      <>
        <DomainsSection versioned={versioned} />
        {(mayAct(clientId) || me().isOperator) && <HandoverSection client={clientId} container={id} />}
        <SameOriginSection versioned={versioned} />
        <VerificationSection container={container} />
      </>
    );
  }
  if (tab === 'traffic') return <TrafficSection id={id} />;
  if (tab === 'settings') {
    return (
      <>
        <SettingsSection versioned={versioned} />
        <KeysSection versioned={versioned} />
        {mayAct(clientId) && <DangerSection versioned={versioned} />}
      </>
    );
  }
  if (tab === 'history') return <HistorySection versioned={versioned} />;
  return (
    <>
      <TrafficSection id={id} isShort />
      <SnippetSection container={container} />
      <HealthSection container={container} />
      <ChecklistSection container={container} />
    </>
  );
}
