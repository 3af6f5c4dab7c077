import { useState } from 'preact/hooks';
import type { components } from '../../../../../base/client/index.ts';
import { api } from '../../data/api.ts';
import type { Versioned } from '../../data/containers.ts';
import { refresh, useQuery } from '../../data/query.ts';
import { mayAct } from '../../data/session.ts';
import { ChangeTable } from '../../parts/changes.tsx';
import { Confirm, type OfVersion } from '../../parts/confirm.tsx';
import { Ago } from '../../parts/marks.tsx';
import { Section } from '../../parts/page.tsx';
import { Empty, Known } from '../../parts/states.tsx';
import { plural } from '../../text/format.ts';

type Entry = components['schemas']['HistoryEntry'];

/** The commits of the container's manifest, the newest first, each with a button to undo it; the API refuses some. */
export function HistorySection({ versioned }: { versioned: Versioned }) {
  const { id, clientId } = versioned.container;
  const [limit, setLimit] = useState(10);
  const [chosen, choose] = useState<Entry | null>(null);
  const query = useQuery(`container history ${id} ${limit}`, async () => {
    const params = { path: { id }, query: { limit } };
    return (await api.get('/server-containers/{id}/history', { params })).data;
  });
  return (
    <Section id="history" title="History">
      <Known query={query} rows={4}>
        {({ history, next }) =>
          history.length === 0 ? (
            <Empty title="No commit yet" />
          ) : (
            <>
              <ol class="history">
                {history.map((entry) => (
                  <li key={entry.commit}>
                    <details>
                      <summary>
                        <span class="grow">
                          <span class="strong">{entry.subject}</span>
                          {!entry.valid && <span class="state bad">Invalid, changed nothing</span>}
                          <br />
                          <span class="dim small">
                            {entry.author} · <Ago at={entry.at} /> · {plural(entry.changes.length, 'value')} ·{' '}
                            <code>{entry.commit.slice(0, 8)}</code>
                          </span>
                        </span>
                      </summary>
                      {entry.reason && <p>Reason: {entry.reason}</p>}
                      <ChangeTable changes={entry.changes} />
                      {mayAct(clientId) && (
                        <button type="button" onClick={() => choose(entry)}>
                          Revert this
                        </button>
                      )}
                    </details>
                  </li>
                ))}
              </ol>
              {next !== null && limit < 100 && (
                <button type="button" onClick={() => setLimit(100)}>
                  Show older commits
                </button>
              )}
            </>
          )
        }
      </Known>
      {chosen !== null && <Revert versioned={versioned} entry={chosen} close={() => choose(null)} />}
    </Section>
  );
}

function Revert({ versioned, entry, close }: { versioned: Versioned; entry: Entry; close: () => void }) {
  const { id } = versioned.container;
  const revert = async (dryRun: boolean, header: OfVersion) => {
    return await api.post('/server-containers/{id}/revert', {
      params: { path: { id }, header, query: dryRun ? { dryRun: '1' } : {} },
      body: { commit: entry.commit },
    });
  };
  return (
    <Confirm
      title="Revert this commit?"
      verb="Revert"
      versioned={versioned}
      close={close}
      plan={async (header) => (await revert(true, header)).data}
      act={async (header) => {
        await revert(false, header);
        refresh(id, 'containers');
      }}
    >
      <p>
        “{entry.subject}” of {entry.author} is undone by a new commit in your name. Later changes stay.
      </p>
    </Confirm>
  );
}
