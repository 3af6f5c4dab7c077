/** `provision`: a creation. `restore`: git brought a site back. `deprovision`: git took a site away. */
export const SAGA_KINDS = ['provision', 'restore', 'deprovision'] as const;
export type OperationKind = (typeof SAGA_KINDS)[number];

export const OPERATION_STATUSES = ['running', 'succeeded', 'failed', 'cancelled'] as const;
export type OperationStatus = (typeof OPERATION_STATUSES)[number];

/**
 * Each step is recorded before it is done and can be repeated, so that a restart continues where the process stopped.
 * A creation takes `commit → provision → follow`, even if the provisioner doesn't answer. A failure before `follow`
 * leads to `withdraw`, a failure in it to `tombstone → clean`.
 */
export const STEPS = ['commit', 'provision', 'follow', 'withdraw', 'tombstone', 'clean'] as const;
export type SagaStep = (typeof STEPS)[number];

/** Steps in which git lacks what the operation decides, or may lose it again: git must not be projected. */
const UNSETTLED: readonly SagaStep[] = ['commit', 'provision', 'withdraw', 'tombstone'];

export function isUnsettled(step: SagaStep | null): boolean {
  return step !== null && UNSETTLED.includes(step);
}

export const STEP_STATES = ['queued', 'running', 'succeeded', 'failed', 'skipped', 'cancelled'] as const;

/** A step as the API shows it. Times are ISO 8601; `null`: not yet, or unknown. */
export interface OperationStep {
  readonly name: string;
  readonly state: (typeof STEP_STATES)[number];
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly error?: string | undefined;
}
