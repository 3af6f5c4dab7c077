import { useEffect } from 'preact/hooks';
import type { components } from '../../../../../base/client/index.ts';
import { api } from '../../data/api.ts';
import { refresh, usePolling, useQuery } from '../../data/query.ts';
import { StateMark } from '../../parts/marks.tsx';
import { Known } from '../../parts/states.tsx';
import { plural, words } from '../../text/format.ts';

type Operation = components['schemas']['Operation'];

/** Milliseconds between two reads of a running operation. */
const AGAIN_MS = 700;

/** The steps of an operation as they happen; folded up once all have succeeded. */
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
          {status === 'succeeded' && steps.every(({ state }) => state === status) ? (
            <details>
              <summary>{plural(steps.length, 'step')} done</summary>
              <StepList steps={steps} />
            </details>
          ) : (
            <StepList steps={steps} />
          )}
          {status === 'failed' && detail !== null && <p class="notice bad">{detail}</p>}
        </>
      )}
    </Known>
  );
}

function StepList({ steps }: { steps: Operation['steps'] }) {
  return (
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
  );
}

/** A step such as `create kv EDGE_CONFIG/acme`: the action in plain words, the resource by its own name. */
function StepName({ name }: { name: string }) {
  const [action = '', target = '', ...resource] = name.split(' ');
  return (
    <>
      {words(`${action} ${target}`.trim())}
      {resource.length > 0 && <code> {resource.join(' ')}</code>}
    </>
  );
}
