import { z } from 'zod';
import { givenId } from '../../sites/manifest/schema.ts';
import { STATUS_REASONS, type StatusReason } from '../lifecycle/status.ts';
import { OPERATION_STATUSES, SAGA_KINDS, STEP_STATES } from '../lifecycle/steps.ts';
import { pageSchema, sequenceQuery } from '../view/page.ts';

const step = z.object({
  name: z.string(),
  by: z.enum(['management', 'provisioner']),
  state: z.enum(STEP_STATES),
  startedAt: z.iso.datetime().nullable(),
  endedAt: z.iso.datetime().nullable(),
  error: z.string().optional(),
});

const operation = {
  id: z.uuid(),
  containerId: z.uuid(),
  kind: z.enum(SAGA_KINDS),
  status: z.enum(OPERATION_STATUSES),
  reason: z.enum(Object.keys(STATUS_REASONS) as [StatusReason, ...StatusReason[]]).nullable(), // Object.keys drops the key type
  detail: z.string().nullable(),
  actor: z.string(),
  requestId: z.string(),
  startedAt: z.iso.datetime(),
  endedAt: z.iso.datetime().nullable(),
};

export const operationView = z
  .object({
    ...operation,
    steps: z.array(step).meta({ description: 'the steps of management, then those of the provisioner' }),
    hostAnswers: z.boolean().meta({
      description: 'false: the provisioner doesn’t answer at the moment, so its steps are missing or old',
    }),
  })
  .meta({ id: 'Operation' });

export const operationParams = z.strictObject({ id: givenId });
export const operationQuery = z.strictObject({
  wait: z.coerce.number().min(0).max(30).default(0).meta({
    description: 'seconds: the answer comes when the operation ends, at the latest after this time',
  }),
});
export const operationsQuery = z.strictObject(sequenceQuery);
export const operationList = pageSchema(z.object(operation).meta({ id: 'OperationSummary' }));
