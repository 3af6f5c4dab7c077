import { hash, randomUUID } from 'node:crypto';
import { normaliseContainerConfig } from '../../gitops/manifest/container-config.ts';
import { encryptSecret } from '../../gitops/manifest/secrets.ts';
import { demandRole } from '../access/roles.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';
import type { OperationRow } from '../records/operations.repository.ts';
import type { ContainerView } from '../view/container-view.ts';
import { type CreationAnswer, createdContainer, recordedAnswer, repeatedAnswer } from './answer.ts';
import { claimContainer } from './claim.ts';
import type { NewContainer } from './containers.schema.ts';
import { consentOf, type Draft, newToken } from './draft.ts';
import { storeAnswer } from './idempotency.repository.ts';
import { nameWarnings } from './names/neutral-name.ts';
import { refuseOwnZone } from './names/own-zone.ts';
import { demandRoom } from './room.ts';

/** What runs the operations of containers. */
export interface OperationRunner {
  /** Runs those steps of a new operation that a request waits for. */
  settle(operation: OperationRow): Promise<void>;
  /** Announces a new operation. */
  trigger(): void;
}

interface Creation {
  readonly body: NewContainer;
  readonly caller: Actor;
  readonly requestId: string;
  readonly idempotencyKey: string | undefined;
}

/**
 * Creates a container and waits until the provisioner accepts it, for `answerMs` at most; later steps run in the
 * background. Throws a `ManagementProblem`. After a failed step the container is `failed`, and its ports and domains
 * are released.
 */
export async function createContainer(
  context: Context,
  runner: OperationRunner,
  { body, caller, requestId, idempotencyKey }: Creation,
): Promise<ContainerView> {
  const { db, settings, clock } = context;
  await demandRole(db, body.clientId, caller.subject, 'act');
  const domains = body.pages.map(({ domain }) => domain);
  refuseOwnZone(settings, domains, (index) => `domains.${index}`);
  const config = canonicalConfig(body.containerConfigB64);
  const key =
    idempotencyKey === undefined
      ? null
      : { subject: caller.subject, key: idempotencyKey, bodyHash: hash('sha256', JSON.stringify(body)) };
  const created = (answer: CreationAnswer): ContainerView => {
    const view = createdContainer(answer);
    const warnings = nameWarnings({ name: body.name, domains }, view, settings);
    return { ...view, warnings: [...warnings, ...view.warnings] };
  };
  const before = key === null ? null : await repeatedAnswer(context, key);
  if (before !== null) return created(before);
  demandRoom(context, { subject: caller.subject, requestId });

  const draft: Draft = {
    id: randomUUID(),
    clientId: body.clientId,
    name: body.name,
    domains: body.pages.map((page) => ({ ...page, token: newToken('ct') })),
    features: body.features,
    modules: body.modules,
    consent: consentOf(body),
    containerConfig: await encryptSecret(settings.ageRecipient, config),
  };
  const operation = await claimContainer(context, draft, { caller, requestId, key });
  if (operation === null) {
    // Another request took the key after `repeatedAnswer` had found it free.
    const answer = key === null ? null : await repeatedAnswer(context, key);
    if (answer === null) throw new ManagementProblem('request_in_progress');
    return created(answer);
  }
  const isSettled = await Promise.race([
    runner.settle(operation).then(() => true),
    clock.sleep(settings.answerMs, { ref: false }).then(() => false),
  ]);
  runner.trigger();
  const answer = await recordedAnswer(context, draft.id);
  // An unsettled creation can still be withdrawn, so its answer isn't stored: a repeated request gets the current one.
  if (key !== null && isSettled) await storeAnswer(db, key, answer);
  return created(answer);
}

/** Throws `invalid_container_config`. The message never quotes the value, because it holds a token. */
function canonicalConfig(given: string): string {
  const config = normaliseContainerConfig(given);
  if (config.ok) return config.text;
  throw new ManagementProblem('invalid_container_config', {
    detail: `containerConfigB64 ${config.problem}: copy it whole from Tag Manager (Admin, Container settings, Manually provision tagging server)`,
    errors: [{ path: 'containerConfigB64', message: config.problem }],
  });
}
