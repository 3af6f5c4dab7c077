import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { demandContainer } from '../access/containers.ts';
import { ProvisionerError } from '../clients/provisioner-client.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import type { OperationStep } from '../lifecycle/steps.ts';
import { textsWithoutForeignNames } from '../records/foreign-names.repository.ts';
import { listOperations, type OperationRow, visibleOperation } from '../records/operations.repository.ts';
import { containerParams } from '../view/container-view.ts';
import { paged } from '../view/page.ts';
import { stepsOf } from './host-steps.ts';
import {
  operationList,
  operationParams,
  operationQuery,
  operationsQuery,
  operationView,
} from './operations.schema.ts';
import type { OperationWaits } from './waits.ts';

/** Milliseconds that an answer waits for the provisioner's steps. */
const HOST_MS = 2_000;

/** What happens to containers, with the steps of management and of the provisioner. */
export function operationsRoutes(context: Context, waits: OperationWaits): FastifyPluginAsyncZod {
  const { db } = context;
  return async (app) => {
    app.addHook('preClose', async () => waits.end());

    app.get(
      '/operations/:id',
      {
        config: { access: 'read' },
        schema: {
          operationId: 'getOperation',
          summary: 'Read an operation and its steps, or wait for its end',
          tags: ['operations'],
          params: operationParams,
          querystring: operationQuery,
          response: { 200: operationView, ...problems('invalid_request', 'unknown_operation') },
        },
      },
      async (request) => {
        const { id } = request.params;
        const row = await waits.until(id, request.query.wait * 1000, async () => {
          const found = await visibleOperation(db, id, callerOf(request));
          if (found === undefined) throw new ManagementProblem('unknown_operation');
          return { row: found, hasEnded: found.status !== 'running' };
        });
        const { steps, hostAnswers } = await hostSteps(context, row, request.id);
        return {
          ...summaryOf(row),
          steps: [...ownSteps(row), ...steps.map((step) => ({ ...step, by: 'provisioner' as const }))],
          hostAnswers,
        };
      },
    );

    app.get(
      '/server-containers/:id/operations',
      {
        config: { access: 'read' },
        schema: {
          operationId: 'listOperations',
          summary: 'List the operations of a container, the newest first',
          tags: ['operations'],
          params: containerParams,
          querystring: operationsQuery,
          response: { 200: operationList, ...problems('invalid_request', 'unknown_container') },
        },
      },
      async (request) => {
        const { id } = await demandContainer(db, request.params.id, callerOf(request), 'read');
        const { limit, cursor } = request.query;
        const { items, next } = paged(
          await listOperations(db, id, { limit: limit + 1, cursor }),
          limit,
          ({ seq }) => seq,
        );
        return { items: items.map(summaryOf), next };
      },
    );
  };
}

function summaryOf(row: OperationRow) {
  const { id, container_id, kind, status, reason, detail, actor, request_id, created_at, updated_at } = row;
  return {
    id,
    containerId: container_id,
    kind,
    status,
    reason,
    detail,
    actor: actor.subject,
    requestId: request_id,
    startedAt: created_at.toISOString(),
    endedAt: status === 'running' ? null : updated_at.toISOString(),
  };
}

function ownSteps({ steps, status, step, updated_at }: OperationRow) {
  const current = {
    name: step,
    state: 'running' as const,
    startedAt: updated_at.toISOString(),
    endedAt: null,
  };
  return [...steps, ...(status === 'running' ? [current] : [])].map((one) => ({
    ...one,
    by: 'management' as const,
  }));
}

/** The provisioner's steps without names of other clients' sites: as it reports them now, or as recorded at the end. */
async function hostSteps(
  { db, provisioner }: Context,
  { container_id, status, provisioner_operation: id, host_steps: recorded }: OperationRow,
  requestId: string,
): Promise<{ steps: OperationStep[]; hostAnswers: boolean }> {
  let steps: readonly OperationStep[] = recorded;
  let hostAnswers = true;
  if (status === 'running' && id !== null) {
    try {
      const known = await provisioner.operation(id, { requestId }, HOST_MS);
      if (known !== null) steps = stepsOf(known);
    } catch (error) {
      if (!(error instanceof ProvisionerError)) throw error;
      hostAnswers = false;
    }
  }
  const texts = steps.flatMap(({ name, error = '' }) => [name, error]);
  const shown = await textsWithoutForeignNames(db, container_id, texts);
  return { steps: steps.map((step, index) => presentedStep(step, shown.slice(index * 2))), hostAnswers };
}

/** A step with its texts as the client may read them. */
function presentedStep(step: OperationStep, [name = '', error = '']: readonly string[]): OperationStep {
  return { ...step, name, ...(step.error === undefined ? {} : { error }) };
}
