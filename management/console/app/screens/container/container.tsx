import { useRoute } from 'preact-iso';
import { readContainer } from '../../data/containers.ts';
import { useQuery } from '../../data/query.ts';
import { clientName } from '../../data/session.ts';
import { Ago, StateMark } from '../../parts/marks.tsx';
import { Page } from '../../parts/page.tsx';
import { Known } from '../../parts/states.tsx';
import { HistorySection } from './history.tsx';
import { SnippetSection } from './snippet.tsx';
import { TrafficSection } from './traffic.tsx';

const PARTS = ['Traffic', 'Snippet', 'History'];

/** One container: what it does, how it is, and what changed. */
export default function ContainerScreen() {
  const { id = '' } = useRoute().params;
  const query = useQuery(`container ${id}`, () => readContainer(id));
  const name = query.data?.container.name;
  return (
    <Page
      title={name ?? 'Container'}
      sub={
        query.data ? (
          <>
            <StateMark of={query.data.container.status} />
            <StateMark of={query.data.container.health} />
            {query.data.container.suspended && <StateMark of="suspended" />}
            <span class="dim">{clientName(query.data.container.clientId)}</span>
            <span class="dim">
              changed <Ago at={query.data.container.updatedAt} />
            </span>
          </>
        ) : (
          ' '
        )
      }
    >
      <nav class="parts" aria-label="Parts of this page">
        {PARTS.map((part) => (
          <a key={part} href={`#${part.toLowerCase()}`}>
            {part}
          </a>
        ))}
      </nav>
      <Known query={query} rows={12}>
        {(versioned) => (
          <>
            <TrafficSection id={id} />
            <SnippetSection container={versioned.container} />
            <HistorySection versioned={versioned} />
          </>
        )}
      </Known>
    </Page>
  );
}
