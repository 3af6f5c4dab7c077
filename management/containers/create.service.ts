import { createHash, randomUUID } from 'node:crypto';
import { encryptSecret } from '../../gitops/manifest/secrets.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { ProblemError } from '../http/errors.ts';
import { demandRole } from '../access/roles.ts';
import { storeAnswer } from './idempotency.repository.ts';
import type { Runner } from '../operations/runner.ts';
import { refuseOwnZone } from '../records/hostnames.repository.ts';
import { answerNow, earlierAnswer, reply } from './answer.ts';
import { begin } from './claim.ts';
import { validateContainerConfig } from './container-config.ts';
import type { ContainerView, NewContainer } from './containers.schema.ts';
import { type Draft, newToken } from './draft.ts';

export interface Creation {
  readonly body: NewContainer;
  readonly caller: Actor;
  readonly requestId: string;
  readonly idempotencyKey: string | undefined;
}

/**
 * Creates a container as far as the provisioner's acceptance; what comes then is followed in the background. Throws
 * the problem to answer. A failure on the way leaves the container `failed`, with everything else given back.
 */
export async function createContainer(
  context: Context,
  runner: Runner,
  { body, caller, requestId, idempotencyKey }: Creation,
): Promise<ContainerView> {
  const { db, settings } = context;
  await demandRole(db, body.clientId, caller.subject, 'act');
  refuseOwnZone(
    settings,
    body.pages.map(({ domain }) => domain),
    (index) => `domains.${index}`,
  );
  const config = validateContainerConfig(body.containerConfigB64);
  const key =
    idempotencyKey === undefined
      ? null
      : { subject: caller.subject, key: idempotencyKey, bodyHash: hashOf(body) };
  const before = key === null ? null : await earlierAnswer(context, key);
  if (before !== null) return reply(before);

  const draft: Draft = {
    id: randomUUID(),
    clientId: body.clientId,
    name: body.name,
    domains: body.pages.map((page) => ({ ...page, token: newToken('ct') })),
    features: body.features,
    modules: body.modules,
    containerConfig: await encryptSecret(settings.ageRecipient, config),
  };
  const operation = await begin(context, draft, { caller, requestId, key });
  if (operation === null) {
    // Somebody else came first with this key, between the look and the transaction.
    const answer = key === null ? null : await earlierAnswer(context, key);
    if (answer === null) throw new ProblemError('request_in_progress');
    return reply(answer);
  }
  await runner.settle(operation);
  runner.wake();
  const answer = await answerNow(context, draft.id);
  if (key !== null) await storeAnswer(db, key, answer);
  return reply(answer);
}

function hashOf(body: NewContainer): string {
  return createHash('sha256').update(JSON.stringify(body)).digest('hex');
}
