import { HOST_FAULTS, meaningOf, type Reason } from '../../gitops/report/report.ts';
import { formatManifest } from '../../sites/manifest/load.ts';
import { readManifest } from '../../sites/manifest/read.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import { SitesRepoError } from '../../sites/repo/errors.ts';
import { ProvisionerError, type ProvisionerOperation } from '../clients/provisioner-client.ts';
import type { Context } from '../context/context.ts';
import { failureDetail, hostDetail, NO_ROOM } from '../lifecycle/host-detail.ts';
import type { OperationStep, SagaStep } from '../lifecycle/steps.ts';
import {
  committedRevision,
  lockContainer,
  moveContainer,
  setDetail,
  setObstacle,
} from '../records/containers.repository.ts';
import { withoutForeignNames } from '../records/foreign-names.repository.ts';
import type { OperationRow } from '../records/operations.repository.ts';
import { stepsOf } from './host-steps.ts';
import type { StepFunction, StepOutcome } from './outcome.ts';
import {
  failContainer,
  isRefusal,
  plannedManifest,
  releaseAll,
  requestOf,
  signed,
} from './provision.steps.ts';

/**
 * Reasons of a site that is served as git says. `SourceUnavailable` replaces `Ready` while newer revisions can't be
 * read; a site that isn't isolated is served too, and its health shows the fault.
 */
const UP: readonly string[] = ['Ready', 'SourceUnavailable', 'NotIsolated'] satisfies Reason[];
/** Reasons of a site that the provisioner keeps trying, or that waits for the operator or the host. */
const WAITING: readonly string[] = ['Progressing', 'Retrying', ...HOST_FAULTS] satisfies Reason[];

/** The steps after the provisioner has accepted the site: they wait until it is up, or gone. */
export function followSteps(
  context: Context,
): Record<Extract<SagaStep, 'follow' | 'tombstone' | 'clean'>, StepFunction> {
  const { db, repo, provisioner } = context;

  /** The manifest that git holds now, which an operator may have edited. `null`: none, a tombstone or invalid. */
  async function desiredManifest(site: string): Promise<{ manifest: Manifest; revision: string } | null> {
    const head = await repo.head();
    const file = head === null ? null : await repo.readSite(head, site);
    if (head === null || file === null) return null;
    const parsed = await readManifest(file.text, file.path);
    return parsed.ok && parsed.manifest.state === 'present'
      ? { manifest: parsed.manifest, revision: head }
      : null;
  }

  async function siteOf(operation: OperationRow): Promise<string> {
    const { site_id } = await db
      .selectFrom('containers')
      .select('site_id')
      .where('id', '=', operation.container_id)
      .executeTakeFirstOrThrow();
    return site_id;
  }

  /** The host has applied everything; the edge may know of the site some seconds later. */
  async function whenServed(
    operation: OperationRow,
    site: string,
    hostSteps?: readonly OperationStep[],
  ): Promise<StepOutcome> {
    const answer = await provisioner.edgeAnswer(site, requestOf(operation));
    if (answer?.served) return active(operation, hostSteps);
    const { detail } = answer ?? { detail: 'the host doesn’t know the site yet' };
    await setDetail(db, operation.container_id, {
      status: 'provisioning',
      detail: `waits for the edge: ${await withoutForeignNames(db, operation.container_id, detail)}`,
    });
    return 'wait';
  }

  const active = (operation: OperationRow, hostSteps?: readonly OperationStep[]): StepOutcome => ({
    to: 'succeeded',
    ...(hostSteps && { hostSteps }),
    effect: async (trx) => {
      const { container_id, kind, actor, request_id } = operation;
      // The commit of a restoration has an event of its own.
      const revision = kind === 'provision' ? await committedRevision(trx, container_id) : null;
      await moveContainer(trx, container_id, 'active', {
        actor: actor.subject,
        requestId: request_id,
        revision,
      });
    },
  });

  /**
   * A creation ends as the provisioner's operation ends. If the provisioner lost the operation, or didn't answer the
   * request that started it, the site is provisioned again.
   */
  async function followCreation(operation: OperationRow, site: string): Promise<StepOutcome> {
    const { provisioner_operation: id } = operation;
    const known = id === null ? null : await provisioner.operation(id, requestOf(operation));
    if (known === null) return await startAgain(operation, site);
    const hostSteps = stepsOf(known);
    if (known.status === 'succeeded') return await whenServed(operation, site, hostSteps);
    if (known.status !== 'failed') return 'wait';
    const detail = failureOf(known);
    if (known.fault === 'host') return await followHeld(operation, site, detail);
    return { to: 'tombstone', reason: 'provisioning_failed', detail, hostSteps };
  }

  /**
   * A host fault delays a creation, but doesn't end it: the container keeps its name, ports and domains. While the
   * provisioner keeps trying, this step waits. If it no longer tries, the site is provisioned again, so that a
   * new operation shows whether the manifest is at fault.
   */
  async function followHeld(operation: OperationRow, site: string, failure: string): Promise<StepOutcome> {
    const status = await provisioner.site(site, requestOf(operation));
    if (status !== null && UP.includes(status.reason)) return await whenServed(operation, site);
    if (status === null || !isMoving(status))
      await showObstacle(operation, status?.message ? hostDetail(status.reason, status.message) : failure);
    if (status !== null && WAITING.includes(status.reason)) return 'wait';
    return await startAgain(operation, site);
  }

  async function startAgain(operation: OperationRow, site: string): Promise<StepOutcome> {
    const desired = await desiredManifest(site);
    // Git no longer asks for the site, and the projection will start its removal; or the manifest isn't valid now.
    if (desired === null) return 'wait';
    // A committer may have changed the client in git, and the provisioner binds secrets of the client that it is told.
    const { client } = plannedManifest(operation);
    const manifest = { ...desired.manifest, client };
    try {
      const started = await provisioner.provision(manifest, desired.revision, requestOf(operation));
      return { to: 'follow', provisionerOperation: started };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return { to: 'tombstone', reason: 'provisioner_refused', detail: error.message };
    }
  }

  async function showObstacle(operation: OperationRow, message: string): Promise<void> {
    const detail = await withoutForeignNames(db, operation.container_id, message);
    await db.transaction().execute(async (trx) => {
      const container = await lockContainer(trx, operation.container_id);
      const { status_reason, status_detail } = container;
      if (status_reason === 'provisioning_failed' && status_detail === detail) return;
      const cause = { actor: null, requestId: operation.request_id, revision: null };
      await setObstacle(trx, container, { reason: 'provisioning_failed', detail }, cause);
    });
  }

  /**
   * A restoration never fails, because git asks for the site. Until the site is up, the container shows the obstacle.
   */
  async function followRestore(operation: OperationRow, site: string): Promise<StepOutcome> {
    const status = await provisioner.site(site, requestOf(operation));
    if (status !== null && UP.includes(status.reason)) return await whenServed(operation, site);
    if (status?.message && !isMoving(status)) {
      const isFull = status.reason === 'QuotaReached';
      await showObstacle(operation, isFull ? NO_ROOM : status.message);
    }
    return 'wait';
  }

  return {
    async follow(operation) {
      const site = await siteOf(operation);
      try {
        return operation.kind === 'restore'
          ? await followRestore(operation, site)
          : await followCreation(operation, site);
      } catch (error) {
        return waitAfter(error);
      }
    },

    async tombstone(operation) {
      const site = await siteOf(operation);
      try {
        await repo.commit({
          ...signed(operation, site, operation.detail ?? 'provisioning failed'),
          subject: `Withdraw ${site}`,
          edit: (current) => withTombstone(current, site),
        });
      } catch (error) {
        return waitAfter(error);
      }
      return {
        to: 'clean',
        provisionerOperation: null,
        effect: (trx) => failContainer(trx, operation),
      };
    },

    /** Releases ports and domains once the provisioner reports that nothing of the site is left. */
    async clean(operation) {
      const site = await siteOf(operation);
      const request = requestOf(operation);
      let hostSteps: readonly OperationStep[] | undefined;
      try {
        const { provisioner_operation: id } = operation;
        if (id === null) {
          const started = await provisioner.deprovision(site, request);
          if (started !== null) return { to: 'clean', provisionerOperation: started };
        } else {
          const known = await provisioner.operation(id, request);
          if (known?.status === 'queued' || known?.status === 'running') return 'wait';
          if (known !== null) hostSteps = stepsOf(known);
        }
        // While git can't be read, a host that has just started may not know yet what it has of the site.
        if ((await repo.head()) === null || !(await provisioner.hasNothingOf(site, request))) return 'wait';
      } catch (error) {
        return waitAfter(error);
      }
      return {
        to: operation.kind === 'deprovision' ? 'succeeded' : 'failed',
        ...(hostSteps && { hostSteps }),
        effect: async (trx) => {
          const { container_id, actor, request_id } = operation;
          await releaseAll(trx, container_id);
          if (operation.kind !== 'deprovision') return;
          const cause = { actor: actor.subject, requestId: request_id, revision: null };
          await moveContainer(trx, container_id, 'removed', cause);
        },
      };
    },
  };
}

/** The text with `state: absent`. A missing file, a tombstone and an invalid manifest are returned unchanged. */
async function withTombstone(current: string | null, site: string): Promise<string | null> {
  if (current === null) return null;
  const parsed = await readManifest(current, `${site}.yaml`);
  if (!parsed.ok || parsed.manifest.state === 'absent') return current;
  return formatManifest({ ...parsed.manifest, state: 'absent' });
}

/** Its message only counts the changes of its creation or removal. */
function isMoving({ reason }: { readonly reason: string }): boolean {
  return ['changing', 'gone'].includes(meaningOf(reason));
}

function failureOf({ reason, steps }: ProvisionerOperation): string {
  const failed = steps.find(({ error }) => error !== undefined);
  if (reason !== undefined) return failureDetail(reason);
  return failed ? `${failed.target} ${failed.key}: ${failed.error}` : 'the provisioner gave no reason';
}

/** An unreachable provisioner or repository is polled again. */
function waitAfter(error: unknown): StepOutcome {
  if (error instanceof ProvisionerError || error instanceof SitesRepoError) return 'wait';
  throw error;
}
