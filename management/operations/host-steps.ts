import type { ProvisionerOperation } from '../clients/provisioner-client.ts';
import type { OperationStep } from '../lifecycle/steps.ts';

/** The steps of a provisioner's operation as the API shows them. */
export function stepsOf({ steps }: ProvisionerOperation): OperationStep[] {
  return steps.map(({ target, key, op, status, error, startedAt, endedAt }) => ({
    name: [op ?? 'apply', target, key].join(' '),
    state: status,
    startedAt: startedAt ?? null,
    endedAt: endedAt ?? null,
    ...(error === undefined ? {} : { error }),
  }));
}
