import { shownHost } from '../../../../../../base/host-name.ts';
import { api } from '../../../data/api.ts';
import type { Container } from '../../../data/containers.ts';
import { refresh } from '../../../data/query.ts';
import { mayEdit } from '../../../data/session.ts';
import { useAction } from '../../../parts/action.tsx';
import { StateMark } from '../../../parts/marks.tsx';
import { Failure } from '../../../parts/states.tsx';
import { Records } from './records.tsx';

/** The proofs of a container's domains, each with its record until it is proven, and a button to check it. */
export function DomainProofs({ container }: { container: Container }) {
  return (
    <ul class="rows">
      {container.domains.map(
        ({ domain, proof }) =>
          proof !== null && (
            <li key={domain} class="tall">
              <div class="grow">
                <span class="strong">{shownHost(domain)}</span> <StateMark of={proof.status} />
                {proof.status !== 'proven' && <Records records={[{ type: 'TXT', ...proof.record }]} />}
              </div>
              {mayEdit(container.clientId) && <CheckButton id={container.id} domain={domain} />}
            </li>
          ),
      )}
    </ul>
  );
}

function CheckButton({ id, domain }: { id: string; domain: string }) {
  const { isBusy, error, run } = useAction();
  const params = { path: { id, domain } };
  const check = async () => {
    await api.post('/server-containers/{id}/domains/{domain}/check', { params });
    refresh(id);
  };
  return (
    <>
      <button
        type="button"
        disabled={isBusy}
        aria-label={`Check now: ${shownHost(domain)}`}
        onClick={() => void run(check)}
      >
        Check now
      </button>
      {error !== null && <Failure error={error} />}
    </>
  );
}
