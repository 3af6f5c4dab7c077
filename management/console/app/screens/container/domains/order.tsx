import { useState } from 'preact/hooks';
import { shownHost } from '../../../../../../base/host-name.ts';
import { api } from '../../../data/api.ts';
import type { Versioned } from '../../../data/containers.ts';
import { refresh } from '../../../data/query.ts';
import { Confirm, type OfVersion } from '../../../parts/confirm.tsx';

/** Puts the domains in another order: the first one is the primary, which is served even if `multi_domain` is off. */
export function DomainOrder({ versioned, close }: { versioned: Versioned; close: () => void }) {
  const { id } = versioned.container;
  const [base] = useState(versioned);
  const before = base.container.domains.map(({ domain }) => domain);
  const [order, setOrder] = useState(before);
  const [isReviewing, setReviewing] = useState(false);
  const move = (from: number, to: number) => {
    const moved = order[from];
    if (moved === undefined) return;
    setOrder(order.toSpliced(from, 1).toSpliced(to, 0, moved));
  };
  const send = (dryRun: boolean, header: OfVersion) =>
    api.put('/server-containers/{id}/domains/order', {
      params: { path: { id }, header, query: dryRun ? { dryRun: '1' } : {} },
      body: { domains: order },
    });
  return (
    <>
      <form
        class="form inset"
        aria-label="Order of the domains"
        onSubmit={(event) => {
          event.preventDefault();
          setReviewing(true);
        }}
      >
        <p class="small dim">
          The first domain is the primary: it is served even if “Several domains” is off.
        </p>
        <ol class="rows numbered">
          {order.map((domain, index) => (
            <li key={domain}>
              <span class="grow strong">{shownHost(domain)}</span>
              {index === 0 && <span class="dim small">primary</span>}
              <button
                type="button"
                aria-label={`Move ${shownHost(domain)} up`}
                disabled={index === 0}
                onClick={() => move(index, index - 1)}
              >
                ↑
              </button>
              <button
                type="button"
                aria-label={`Move ${shownHost(domain)} down`}
                disabled={index === order.length - 1}
                onClick={() => move(index, index + 1)}
              >
                ↓
              </button>
            </li>
          ))}
        </ol>
        <div class="actions">
          <button type="submit" class="primary" disabled={order.join() === before.join()}>
            Review the order
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
      {isReviewing && (
        <Confirm
          title="Order the domains this way?"
          verb="Save"
          versioned={base}
          close={() => setReviewing(false)}
          plan={async (header) => (await send(true, header)).data}
          act={async (header) => {
            await send(false, header);
            refresh(id);
            close();
          }}
        >
          <p>
            Primary: <span class="strong">{order[0]}</span>
          </p>
        </Confirm>
      )}
    </>
  );
}
