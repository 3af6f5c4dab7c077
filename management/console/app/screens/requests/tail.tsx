import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import { MOST_TAIL_ROWS, type Tail, type TailSource, useTail } from '../../data/live-tail.ts';
import { Empty, Failure } from '../../parts/states.tsx';
import { count, milliseconds, plural } from '../../text/format.ts';

interface TailViewProps<Row> {
  readonly source: TailSource;
  /** What a row is, in lower case: `request`. */
  readonly noun: string;
  /** What happened at the time of a row, such as `made`. */
  readonly verb: string;
  readonly head: ComponentChildren;
  readonly row: (row: Row) => JSX.Element;
}

/** Rows as a stream sends them, the newest first, with a button that pauses them. */
export function TailView<Row extends { readonly time: string }>({
  source,
  noun,
  verb,
  head,
  row,
}: TailViewProps<Row>) {
  const [isPaused, setPaused] = useState(false);
  const tail = useTail<Row>(source, isPaused);
  return (
    <>
      <div class="list-head">
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? 'Resume' : 'Pause'}
        </button>
        <span class={`live-state ${tail.isOpen && !isPaused ? 'on' : ''}`} role="status">
          {!tail.isOpen ? 'Connecting' : isPaused ? 'Paused' : 'Following'}
        </span>
        <span class="grow dim small">{numbersOf(tail, { noun, verb, isPaused })}</span>
      </div>
      <Gaps tail={tail} noun={noun} />
      {tail.error !== null && <Failure error={tail.error} />}
      {tail.rows.length === 0 ? (
        <Empty title={tail.isOpen ? `Waiting for the next ${noun}` : 'Connecting to the stream'}>
          <p class="dim">Only {noun}s from now on appear here. Search has the earlier ones.</p>
        </Empty>
      ) : (
        <div class="table-box">
          <table class="list">
            <thead>
              <tr>{head}</tr>
            </thead>
            <tbody>{tail.rows.map(row)}</tbody>
          </table>
        </div>
      )}
    </>
  );
}

function numbersOf(
  { rows, received, waiting, perSecond, lateMs }: Tail<unknown>,
  { noun, verb, isPaused }: { noun: string; verb: string; isPaused: boolean },
): string | null {
  if (received === 0) return null;
  const parts = [
    `${perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond))} ${noun}s/s`,
    rows.length < MOST_TAIL_ROWS || received === rows.length
      ? `${count(received)} received`
      : `the newest ${MOST_TAIL_ROWS} of ${count(received)} received`,
    ...(isPaused && waiting > 0 ? [`${plural(waiting, `new ${noun}`)} since the pause`] : []),
    ...(lateMs === null ? [] : [`the newest arrived ${milliseconds(lateMs)} after it was ${verb}`]),
  ];
  return parts.join(' · ');
}

function Gaps({ tail: { missed, hasGap }, noun }: { tail: Tail<unknown>; noun: string }) {
  if (missed === 0 && !hasGap) return null;
  return (
    <p class="notice warn" role="status">
      {missed > 0 && `This page missed ${plural(missed, noun)}. `}
      {hasGap && `Some ${noun}s from times without a connection are missing. `}
      Search shows all that are kept.
    </p>
  );
}
