import type { Query } from '../../data/query.ts';
import { Skeleton } from '../../parts/states.tsx';
import { Attention, useTrouble } from './attention.tsx';
import { ENDING_DAYS, EndsSoon, useEnding } from './ending.tsx';

/** What needs attention now or soon. If there is nothing, the section is one line, as high as its skeleton. */
export function Notices() {
  const trouble = useTrouble();
  const ending = useEnding();
  const isKnown = [trouble, ending].every(isAnswered);
  const isCalm =
    [trouble, ending].every(({ data, error }) => error === null && data?.items.length === 0) &&
    ending.data?.hostAnswers === true;
  if (isKnown && !isCalm) {
    return (
      <>
        <Attention query={trouble} />
        <EndsSoon query={ending} />
      </>
    );
  }
  return (
    <section class="card slim" aria-label="What needs attention or ends soon">
      {isKnown ? (
        <p class="calm">Nothing needs attention, and nothing ends within {ENDING_DAYS} days.</p>
      ) : (
        <Skeleton rows={1} />
      )}
    </section>
  );
}

function isAnswered({ data, error }: Query<unknown>): boolean {
  return data !== undefined || error !== null;
}
