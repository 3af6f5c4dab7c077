import { useState } from 'preact/hooks';
import { MOST_TAIL_ROWS, type Tail, useTail } from '../../data/live-tail.ts';
import { type EdgeRequest, liveAddress, type RequestChoice } from '../../data/requests.ts';
import { Empty, Failure } from '../../parts/states.tsx';
import { count, milliseconds, plural } from '../../text/format.ts';
import { RequestDetail } from './detail.tsx';
import { RequestHead, tailRow } from './row.tsx';

/** The requests of a container as the edge reports them, the newest first. */
export function LiveView({ container, filter }: { container: string; filter: RequestChoice }) {
  const [isPaused, setPaused] = useState(false);
  const [shown, show] = useState<EdgeRequest | null>(null);
  const tail = useTail(liveAddress(container, filter), isPaused);
  return (
    <>
      <div class="list-head">
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? 'Resume' : 'Pause'}
        </button>
        <span class={`live-state ${tail.isOpen && !isPaused ? 'on' : ''}`} role="status">
          {!tail.isOpen ? 'Connecting' : isPaused ? 'Paused' : 'Following'}
        </span>
        <span class="grow dim small">
          <Numbers tail={tail} isPaused={isPaused} />
        </span>
      </div>
      <Gaps tail={tail} />
      {tail.error !== null && <Failure error={tail.error} />}
      {tail.rows.length === 0 ? (
        <Empty title={tail.isOpen ? 'Waiting for the next request' : 'Connecting to the stream'}>
          <p class="dim">Only requests from now on appear here. Search has the earlier ones.</p>
        </Empty>
      ) : (
        <div class="requests table-box">
          <table class="list">
            <thead>
              <tr>
                <RequestHead hasSite={false} />
              </tr>
            </thead>
            <tbody>{tail.rows.map((row) => tailRow(row, show))}</tbody>
          </table>
        </div>
      )}
      <p class="dim small">
        A request is shown about two seconds after it was made if the edge is on this machine. Cloudflare’s
        queue collects requests for up to a minute first; the management API then sends them within a second.
      </p>
      {shown !== null && <RequestDetail row={shown} close={() => show(null)} />}
    </>
  );
}

function Numbers({ tail, isPaused }: { tail: Tail; isPaused: boolean }) {
  const { rows, received, waiting, perSecond, lateMs } = tail;
  if (received === 0) return null;
  const parts = [
    `${perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond))} requests/s`,
    rows.length < MOST_TAIL_ROWS || received === rows.length
      ? `${count(received)} received`
      : `the newest ${MOST_TAIL_ROWS} of ${count(received)} received`,
    ...(isPaused && waiting > 0 ? [`${plural(waiting, 'new request')} since the pause`] : []),
    ...(lateMs === null ? [] : [`the newest arrived ${milliseconds(lateMs)} after it was made`]),
  ];
  return <>{parts.join(' · ')}</>;
}

function Gaps({ tail: { missed, hasGap } }: { tail: Tail }) {
  if (missed === 0 && !hasGap) return null;
  return (
    <p class="notice warn" role="status">
      {missed > 0 && `${plural(missed, 'request')} came faster than this page could read them. `}
      {hasGap && 'Requests from times without a connection are missing. '}
      Search shows them all.
    </p>
  );
}
