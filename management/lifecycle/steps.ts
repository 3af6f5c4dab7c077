/** `provision`: a creation. `restore`: git brought a site back. `deprovision`: git took a site away. */
export const SAGA_KINDS = ['provision', 'restore', 'deprovision'] as const;
export type OperationKind = (typeof SAGA_KINDS)[number];

export const OPERATION_STATUSES = ['running', 'succeeded', 'failed', 'cancelled'] as const;
export type OperationStatus = (typeof OPERATION_STATUSES)[number];

/**
 * Each step is recorded before it is done and can be done again, so that a restart goes on where it stopped.
 * A creation goes `commit → provision → follow`. What fails before the provisioner accepted goes to
 * `withdraw`, what fails after it to `tombstone → clean`.
 */
export const STEPS = ['commit', 'provision', 'follow', 'withdraw', 'tombstone', 'clean'] as const;
export type SagaStep = (typeof STEPS)[number];

/** Steps in which git doesn't yet say what the operation has decided, so that git must not be projected. */
export const UNSETTLED: readonly SagaStep[] = ['commit', 'provision', 'withdraw', 'tombstone'];
