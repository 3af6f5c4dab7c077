import type { Database } from '../db/database.ts';
import type { StatusReason } from '../lifecycle/status.ts';
import type { OperationStep, SagaStep } from '../lifecycle/steps.ts';
import type { OperationRow } from '../records/operations.repository.ts';

/** The outcome of a step: the next step, the end, or `wait`: the step is tried again at the next poll. */
export type StepOutcome =
  | 'wait'
  | {
      readonly to: SagaStep | 'succeeded' | 'failed';
      /** Runs in the transaction that records the move, but not if the operation was cancelled or moved meanwhile. */
      readonly effect?: (trx: Database) => Promise<void>;
      readonly reason?: StatusReason;
      readonly detail?: string;
      /** The commit that the step has made. */
      readonly revision?: string;
      /** The provisioner's operation to follow from now on; `null`: none. */
      readonly provisionerOperation?: string | null;
      /** The steps of the provisioner's operation, which it may drop later. */
      readonly hostSteps?: readonly OperationStep[];
    };

export type StepFunction = (operation: OperationRow) => Promise<StepOutcome>;
