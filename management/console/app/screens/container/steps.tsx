import { useEffect } from 'preact/hooks';
import { api } from '../../data/api.ts';
import { refresh, usePolling, useQuery } from '../../data/query.ts';
import { StateMark } from '../../parts/marks.tsx';
import { Known } from '../../parts/states.tsx';
import { words } from '../../text/format.ts';

/** Milliseconds between two reads of a running operation. */
const AGAIN_MS = 700;

/** The steps of an operation as they happen. */
export function OperationSteps({ id }: { id: string }) {
  const query = useQuery(`operation ${id}`, async () => {
    return (await api.get('/operations/{id}', { params: { path: { id } } })).data;
  });
  const { data } = query;
  const isRunning = data === undefined || data.status === 'running';
  const container = data?.containerId;
  usePolling(query, isRunning ? AGAIN_MS : null);
  useEffect(() => {
    if (!isRunning && container !== undefined) refresh(`container ${container}`, 'containers');
  }, [isRunning, id, container]);
  return (
    <Known query={query} rows={4}>
      {({ steps, detail, hostAnswers, status }) => (
        <>
          {!hostAnswers && status === 'running' && (
            <p class="notice warn">
              The host doesn’t answer at the moment; its steps are the last known ones.
            </p>
          )}
          <ol class="steps" aria-label="Steps">
            {steps.map(({ name, by, state, error }) => (
              <li key={`${by} ${name}`} class={state}>
                <span class="grow">
                  <StepName name={name} />{' '}
                  <span class="dim small">{by === 'provisioner' ? 'on the host' : 'by the API'}</span>
                  {error !== undefined && <div class="small bad-text">{error}</div>}
                </span>
                <StateMark of={state} />
              </li>
            ))}
          </ol>
          {status === 'failed' && detail !== null && <p class="notice bad">{detail}</p>}
        </>
      )}
    </Known>
  );
}

/** `create kv EDGE_CONFIG/acme`: what is done in words, and with what as it is called. */
function StepName({ name }: { name: string }) {
  const [action = '', target = '', ...resource] = name.split(' ');
  return (
    <>
      {words(`${action} ${target}`.trim())}
      {resource.length > 0 && <code> {resource.join(' ')}</code>}
    </>
  );
}
