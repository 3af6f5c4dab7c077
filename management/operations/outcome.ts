import type { StatusReason } from '../lifecycle/status.ts';
import type { Database } from '../db/database.ts';
import type { OperationRow } from '../records/operations.repository.ts';
import type { SagaStep } from '../lifecycle/steps.ts';

/** What a step came to: the next one, the end, or (`wait`) that it must be looked at again in a while. */
export type StepOutcome =
  | 'wait'
  | {
      readonly to: SagaStep | 'succeeded' | 'failed';
      /** Written in the transaction that records the move, and not at all where the operation was cancelled meanwhile. */
      readonly effect?: (trx: Database) => Promise<void>;
      readonly reason?: StatusReason;
      readonly detail?: string;
      /** The commit that the step has made. */
      readonly revision?: string;
      /** The provisioner's operation to follow from now on; `null` forgets the one before. */
      readonly provisionerOperation?: string | null;
    };

export type StepFunction = (operation: OperationRow) => Promise<StepOutcome>;
