import { api } from '../../data/api.ts';
import { refresh, useQuery } from '../../data/query.ts';
import { useAction } from '../../parts/action.tsx';
import { Ago, StateMark } from '../../parts/marks.tsx';
import { Failure, Known } from '../../parts/states.tsx';
import { plural } from '../../text/format.ts';

/** The last deliveries of a webhook; each that isn't pending can be sent again. */
export function Deliveries({ id }: { id: string }) {
  const { isBusy, error, run } = useAction();
  const query = useQuery(`deliveries ${id}`, async () => {
    return (await api.get('/webhooks/{id}/deliveries', { params: { path: { id }, query: { limit: 10 } } }))
      .data;
  });
  const replay = async (delivery: string) => {
    await api.post('/webhooks/{id}/deliveries/{delivery}/replay', { params: { path: { id, delivery } } });
    refresh(`deliveries ${id}`);
  };
  return (
    <>
      <Known query={query} rows={1}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="dim">Nothing was delivered yet.</p>
          ) : (
            <ul class="rows">
              {items.map((one) => (
                <li key={one.id}>
                  <span class="grow">
                    {one.event}{' '}
                    <span class="small dim">
                      {one.answer === null ? (one.error ?? '') : `answer ${one.answer}`} ·{' '}
                      {plural(one.attempts, 'attempt')}
                    </span>
                  </span>
                  <span class="small dim">
                    <Ago at={one.queuedAt} />
                  </span>
                  <StateMark of={one.status} />
                  <button
                    type="button"
                    disabled={isBusy || one.status === 'pending'}
                    onClick={() => void run(() => replay(one.id))}
                  >
                    Send again
                  </button>
                </li>
              ))}
            </ul>
          )
        }
      </Known>
      {error !== null && <Failure error={error} />}
    </>
  );
}
