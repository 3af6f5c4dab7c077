import { api } from '../../data/api.ts';
import type { Container } from '../../data/containers.ts';
import { refresh } from '../../data/query.ts';
import { mayAct } from '../../data/session.ts';
import { useAction } from '../../parts/action.tsx';
import { Failure } from '../../parts/states.tsx';

/** Ends a suspension, or switches serving on again. */
export function ResumeButton({ container: { id, clientId, serving } }: { container: Container }) {
  const { isBusy, error, run } = useAction();
  if (!mayAct(clientId)) return null;
  return (
    <>
      <button
        type="button"
        disabled={isBusy}
        onClick={() =>
          void run(async () => {
            await api.post('/server-containers/{id}/resume', { params: { path: { id } } });
            refresh(id, 'containers');
          })
        }
      >
        {serving ? 'Resume' : 'Switch serving on'}
      </button>
      {error !== null && <Failure error={error} />}
    </>
  );
}
