import type { components } from '../../../../../base/client/index.ts';
import { count } from '../../text/format.ts';

type Rollout = components['schemas']['ImageRollout'];

/** An active rollout is read again this often, milliseconds. */
export const ROLLOUT_POLL_MS = 2_000;

/** Whether sites may still change. */
export function isActive(status: Rollout['status']): boolean {
  return status === 'running' || status === 'stopping' || status === 'reverting';
}

/** The parts of a bar, in order, each with the states of the sites that it counts. */
const SEGMENTS = [
  ['done', ['swapped', 'already']],
  ['busy', ['changing', 'reverting']],
  ['bad', ['failed']],
  ['idle', ['skipped', 'reverted']],
] as const;

const NAMES: Readonly<Record<string, string>> = {
  swapped: 'changed',
  already: 'had it already',
  changing: 'changing',
  failed: 'failed',
  skipped: 'skipped',
  pending: 'to follow',
};

function totalOf(sites: Rollout['sites']): number {
  return Object.values(sites).reduce((sum, number) => sum + number, 0);
}

/** `3 of 12 changed`, and how many sites have each of the other states but `pending`. */
export function progressOf(sites: Rollout['sites']): string {
  const rest = Object.entries(sites)
    .filter(([state]) => state !== 'swapped' && state !== 'pending')
    .map(([state, number]) => `${count(number)} ${NAMES[state] ?? state}`);
  return [`${count(sites.swapped ?? 0)} of ${count(totalOf(sites))} changed`, ...rest].join(', ');
}

/** How far a rollout is. The words beside it say the same. */
export function ProgressBar({ sites }: { sites: Rollout['sites'] }) {
  const total = Math.max(1, totalOf(sites));
  let at = 0;
  return (
    <svg
      class="progress"
      viewBox="0 0 100 8"
      preserveAspectRatio="none"
      role="img"
      aria-label={progressOf(sites)}
    >
      <rect class="rest" width="100" height="8" />
      {SEGMENTS.map(([tone, states]) => {
        const width = (states.reduce((sum, state) => sum + (sites[state] ?? 0), 0) / total) * 100;
        const x = at;
        at += width;
        return width === 0 ? null : <rect key={tone} class={tone} x={x} width={width} height="8" />;
      })}
    </svg>
  );
}
