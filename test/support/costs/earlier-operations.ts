import type { Operations } from './prices.ts';

/** The commit to which the costs are compared. Not every clone has it; `.ci/run` fetches it by this hash. */
export const EARLIER_COMMIT = 'd30467f4f9b562e27f63879a93b855a4ead37ccf';

/**
 * The operations of 1,000 visits at that commit. Where the clone has the commit, `test/edge/costs.test.ts` counts them
 * again from its sources.
 */
export const EARLIER_OPERATIONS: Operations = {
  requests: 12_400,
  kvReads: 6100,
  kvWrites: 2800,
  queueOperations: 16_800,
  r2Writes: 5600,
};
