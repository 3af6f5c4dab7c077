import { hash } from 'node:crypto';
import { fieldErrors } from '../../base/http/problem.ts';
import { containerResources } from '../../sites/manifest/resources/schema.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import { encryptFor } from '../../sites/manifest/secrets.ts';
import { clientKeysOf } from '../../sites/requests/container.ts';
import { demandRole } from '../access/roles.ts';
import { demandOpen } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';
import { contestDomains, moveWarnings, winnableDomains } from '../proof/contest.ts';
import { storeAnswer } from '../records/idempotency.repository.ts';
import type { OperationRow } from '../records/operations.repository.ts';
import type { ContainerView } from '../view/container-view.ts';
import { claimContainer, type NewClaim, tryClaim } from './claim.ts';
import { canonicalConfig } from './container-config.ts';
import type { NewContainer } from './containers.schema.ts';
import { type Draft, newToken } from './draft.ts';
import { type ContainerPlan, planOfManifests } from './dry-run.ts';
import {
  type CreationAnswer,
  createdContainer,
  recordedAnswer,
  repeatedAnswer,
} from './idempotency/answer.ts';
import { demandResources } from './image.ts';
import { drawUuid } from './names/draw.ts';
import { nameWarnings } from './names/neutral-name.ts';
import { refuseOwnZone } from './names/own-zone.ts';
import type { Planning } from './planning.ts';
import { demandRoom } from './room.ts';

/** What runs the operations of containers. */
export interface OperationRunner {
  /** Runs those steps of a new operation that a request waits for. */
  settle(operation: OperationRow): Promise<void>;
  /** Announces a new operation. */
  trigger(): void;
}

/** What a clone gets from another container. */
type Copied = Pick<Draft, 'containerConfig' | 'image' | 'resources'>;

interface Creation {
  readonly body: Omit<NewContainer, 'containerConfigB64'> & {
    readonly containerConfigB64?: string | undefined;
  };
  /** Of a clone; a `containerConfigB64` of the body takes precedence over the copied one. */
  readonly copied?: Copied;
  /** What must be the same when the idempotency key is used again. Default: the body. */
  readonly repeated?: unknown;
  readonly caller: Actor;
  readonly requestId: string;
  readonly idempotencyKey: string | undefined;
  readonly planning: Planning;
}

/**
 * Creates a container and waits until the provisioner accepts it, for `answerMs` at most; later steps run in the
 * background. Throws a `ManagementProblem`. After a failed step the container is `failed`, and its ports and domains
 * are released.
 */
export async function createContainer(
  context: Context,
  runner: OperationRunner,
  { idempotencyKey, ...creation }: Creation,
): Promise<ContainerView> {
  const { db, settings, clock } = context;
  const { body, caller, requestId, planning, repeated = body } = creation;
  const config = await judgeCreation(context, creation);
  const domains = domainsOf(body);
  const key =
    idempotencyKey === undefined
      ? null
      : { subject: caller.subject, key: idempotencyKey, bodyHash: hash('sha256', JSON.stringify(repeated)) };
  const created = (answer: CreationAnswer): ContainerView => {
    const view = createdContainer(answer);
    const warnings =
      body.siteId === undefined ? nameWarnings({ name: body.name, domains }, view, settings) : [];
    return { ...view, warnings: [...warnings, ...view.warnings] };
  };
  const before = key === null ? null : await repeatedAnswer(context, key);
  if (before !== null) return created(before);
  demandRoom(context, { subject: caller.subject, requestId });
  // Compared before the creation takes any name, and again for its claim.
  await planning.compare(() => planCreation(context, creation));
  const moved = await contestDomains(context, { client: body.clientId, names: domains, requestId });

  const claim = await claimOf(context, creation, config);
  const operation = await claimContainer(context, { ...claim, moved, key });
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
  const answer = await recordedAnswer(context, operation.container_id);
  // An unsettled creation can still be withdrawn, so its answer isn't stored: a repetition is refused until it settles.
  if (key !== null && isSettled) await storeAnswer(db, key, answer);
  return created(answer);
}

/** Judges a creation like `createContainer`, and throws the same problems. Records and commits nothing. */
export async function planCreation(
  context: Context,
  creation: Omit<Creation, 'idempotencyKey'>,
): Promise<ContainerPlan> {
  const { body, caller, requestId } = creation;
  const config = await judgeCreation(context, creation);
  demandRoom(context, { subject: caller.subject, requestId });
  const claim = await claimOf(context, creation, config);
  const winnable = await winnableDomains(context, { client: body.clientId, names: domainsOf(body) });
  const { manifest, checksum } = await tryClaim(context, { ...claim, moved: winnable, key: null });
  const plan = planOfManifests(null, manifest, `Create ${manifest.site}`);
  const names = { name: body.name, domains: domainsOf(body) };
  const planned = { siteId: manifest.site, hostnames: manifest.hostnames };
  const warnings = body.siteId === undefined ? nameWarnings(names, planned, context.settings) : [];
  return {
    plan: {
      ...plan,
      warnings: [
        ...moveWarnings(winnable),
        ...warnings.map(({ host, detail }) => `${host}: ${detail}`),
        ...plan.warnings,
      ],
      checksum,
    },
  };
}

/**
 * The resources, with defaults for what isn't named. Throws `invalid_request` where a pod would request more than its
 * limit.
 */
function validResources(given: NonNullable<NewContainer['resources']>): Manifest['resources'] {
  const { success, data, error } = containerResources.safeParse(given);
  if (success) return data;
  const errors = fieldErrors(error.issues).map(({ path, ...rest }) => ({
    path: `resources.${path}`,
    ...rest,
  }));
  throw new ManagementProblem('invalid_request', { detail: errors[0]?.message, errors });
}

/** The new container configuration in its canonical form; `null`: none is given. Throws if the request is refused. */
async function judgeCreation(
  context: Context,
  { body, caller }: Pick<Creation, 'body' | 'caller'>,
): Promise<string | null> {
  const { db, settings } = context;
  await demandRole(db, body.clientId, caller.subject, 'act');
  await demandOpen(db, { kind: 'clients', id: body.clientId });
  refuseOwnZone(settings, domainsOf(body), (index) => `domains.${index}`);
  if (body.resources !== undefined) {
    demandResources(validResources(body.resources), containerResources.parse({}), caller, settings);
  }
  return body.containerConfigB64 === undefined ? null : canonicalConfig(body.containerConfigB64);
}

function domainsOf({ pages }: Pick<NewContainer, 'pages'>): string[] {
  return pages.map(({ domain }) => domain);
}

/** Without DEFAULT_TLS, an authority if the host has one. A host that hasn't reported yet is asked. */
async function defaultTls({ settings, room, provisioner }: Context, requestId: string) {
  if (settings.defaultTls !== null) return settings.defaultTls;
  const ask = () => provisioner.report({ requestId }).catch(() => ({ hasAuthority: false }));
  const hasAuthority = room.hasAuthority ?? (await ask()).hasAuthority;
  return hasAuthority ? 'acme' : 'files';
}

async function claimOf(
  context: Context,
  { body, copied, caller, requestId, planning }: Omit<Creation, 'idempotencyKey'>,
  config: string | null,
): Promise<Omit<NewClaim, 'moved' | 'key'>> {
  const { ageRecipient } = context.settings;
  const tls = { mode: body.tls ?? (await defaultTls(context, requestId)) };
  return {
    caller,
    requestId,
    planning,
    clientId: body.clientId,
    name: body.name,
    siteId: body.siteId,
    domains: domainsOf(body),
    copied,
    draft: async (draw) => {
      const id = drawUuid(draw);
      return {
        id,
        clientId: body.clientId,
        name: body.name,
        loaderToken: newToken('lt', draw),
        domains: body.pages.map((page) => ({ ...page, token: newToken('ct', draw) })),
        features: body.features,
        modules: body.modules,
        ...clientKeysOf(body),
        tls,
        containerConfig: '',
        ...copied,
        ...(config === null ? {} : { containerConfig: await encryptFor(ageRecipient, id, config) }),
        ...(body.resources === undefined ? {} : { resources: body.resources }),
      };
    },
  };
}
