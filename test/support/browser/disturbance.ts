import { afterEach } from 'vitest';

const CHANGED = 'net::ERR_NETWORK_CHANGED';
let disturbed = false;

/** Takes what Chromium says of a request that failed. */
export function noteFailure(errorText: string | undefined): void {
  disturbed ||= errorText === CHANGED;
}

/**
 * For suites with Chromium, which drops what is under way when one of the machine's interfaces comes or goes, as those
 * of containers do: a test that failed is tried again where that happened meanwhile (`sayDisturbances`), and only there.
 */
export const UNLESS_DISTURBED = { retry: { count: 5, condition: new RegExp(CHANGED) } };

/** Has a test that failed while requests were dropped say so in its last error. */
export function sayDisturbances(): void {
  afterEach(({ task }) => {
    const was = disturbed;
    disturbed = false;
    if (was && task.result?.state === 'fail') throw new Error(`Chromium dropped requests: ${CHANGED}`);
  });
}
