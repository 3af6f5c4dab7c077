import { useState } from 'preact/hooks';
import { type EdgeRequest, liveAddress, type RequestChoice } from '../../data/requests.ts';
import { RequestDetail } from './detail.tsx';
import { RequestHead, tailRow } from './row.tsx';
import { TailView } from './tail.tsx';

/** The requests of a container as the edge reports them, the newest first. */
export function LiveView({ container, filter }: { container: string; filter: RequestChoice }) {
  const [shown, show] = useState<EdgeRequest | null>(null);
  return (
    <>
      <div class="requests stack">
        <TailView<EdgeRequest>
          source={{ address: liveAddress(container, filter), kind: 'request' }}
          noun="request"
          verb="made"
          head={<RequestHead hasSite={false} />}
          row={(row) => tailRow(row, show)}
        />
      </div>
      <p class="dim small">
        A request is shown about two seconds after it was made if the edge is on the API’s host. Otherwise,
        Cloudflare’s queue collects requests for up to a minute; the API then sends them within a second.
      </p>
      {shown !== null && <RequestDetail row={shown} close={() => show(null)} />}
    </>
  );
}
