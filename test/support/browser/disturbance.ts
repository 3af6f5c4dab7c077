import { afterEach } from 'vitest';

const CHANGED = 'net::ERR_NETWORK_CHANGED';
let disturbed = false;

/** Remembers a disturbance if `errorText`, Chromium's error of a failed request, is that of a changed network. */
export function noteFailure(errorText: string | undefined): void {
  disturbed ||= errorText === CHANGED;
}

/**
 * Chromium aborts running requests when a network interface of the machine appears or disappears, as those of containers
 * do. A failed test is retried if that has happened during it (`sayDisturbances`), and only then.
 */
export const UNLESS_DISTURBED = { retry: { count: 5, condition: new RegExp(CHANGED) } };

/** Gives a failed test a last error that says that requests were aborted, if any were. */
export function sayDisturbances(): void {
  afterEach(({ task }) => {
    const was = disturbed;
    disturbed = false;
    if (was && task.result?.state === 'fail') throw new Error(`Chromium dropped requests: ${CHANGED}`);
  });
}
