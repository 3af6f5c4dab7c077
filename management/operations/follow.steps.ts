import { formatManifest, parseManifest } from '../../gitops/manifest/load.ts';
import type { Manifest } from '../../gitops/manifest/schema.ts';
import { SitesRepoError } from '../../gitops/sites-repo/sites-repo.ts';
import { lockContainer, moveContainer, setReason } from '../records/containers.repository.ts';
import type { Context } from '../context/context.ts';
import { type CallContext, ProvisionerError, type ProvisionerOperation } from '../clients/provisioner-client.ts';
import type { OperationRow } from '../records/operations.repository.ts';
import type { StepFunction, StepOutcome } from './outcome.ts';
import { failContainer, releaseAll, requestOf, signed } from './provision.steps.ts';
import type { SagaStep } from '../lifecycle/steps.ts';

/** What follows once git and the provisioner know of the site: waiting for it to come up, or to be gone. */
export function followSteps(
  context: Context,
): Record<Extract<SagaStep, 'follow' | 'tombstone' | 'clean'>, StepFunction> {
  const { db, repo, provisioner } = context;

  /** What git says of the site now: an operator may have edited it meanwhile. */
  async function wantedNow(site: string): Promise<Manifest | null> {
    const head = await repo.head();
    const file = head === null ? null : await repo.readSite(head, site);
    if (file === null) return null;
    const parsed = parseManifest(file.text, file.path);
    return parsed.ok && parsed.manifest.state === 'present' ? parsed.manifest : null;
  }

  async function siteOf(operation: OperationRow): Promise<string> {
    const { site_id } = await db
      .selectFrom('containers')
      .select('site_id')
      .where('id', '=', operation.container_id)
      .executeTakeFirstOrThrow();
    return site_id;
  }

  const active = (operation: OperationRow): StepOutcome => ({
    to: 'succeeded',
    effect: async (trx) => {
      const { container_id, actor, request_id } = operation;
      const cause = { actor: actor.subject, requestId: request_id, revision: null };
      await moveContainer(trx, container_id, 'active', cause);
    },
  });

  /** A creation stands or falls with the provisioner's operation. One that it has forgotten is asked for again. */
  async function followCreation(operation: OperationRow, site: string): Promise<StepOutcome> {
    const { provisioner_operation: id } = operation;
    const known = id === null ? null : await provisioner.operation(id, requestOf(operation));
    if (known === null) {
      const manifest = await wantedNow(site);
      // Taken out of git meanwhile: the projection is about to say so.
      if (manifest === null) return 'wait';
      return {
        to: 'follow',
        provisionerOperation: await provisioner.provision(manifest, requestOf(operation)),
      };
    }
    if (known.status === 'succeeded') return active(operation);
    if (known.status !== 'failed') return 'wait';
    return { to: 'tombstone', reason: 'provisioning_failed', detail: failureOf(known) };
  }

  /** What git brought back isn't ours to give up: it stays wanted, and says what is in its way, until it stands. */
  async function followRestore(operation: OperationRow, site: string): Promise<StepOutcome> {
    const status = await provisioner.site(site, requestOf(operation));
    if (status?.ready && status.reason === 'Ready') return active(operation);
    const detail = status?.message || null;
    await db.transaction().execute(async (trx) => {
      const container = await lockContainer(trx, operation.container_id);
      if (detail === null || container.status_detail === detail) return;
      const cause = { actor: null, requestId: operation.request_id, revision: null };
      await setReason(trx, container, 'provisioning_failed', detail, cause);
    });
    return 'wait';
  }

  /** That the provisioner doesn't know the site means something only after it has looked, and where git can be read. */
  async function isForgotten(site: string, request: CallContext): Promise<boolean> {
    if ((await repo.head()) === null || !(await provisioner.ready(request))) return false;
    return (await provisioner.site(site, request)) === null;
  }

  return {
    async follow(operation) {
      const site = await siteOf(operation);
      try {
        return operation.kind === 'restore'
          ? await followRestore(operation, site)
          : await followCreation(operation, site);
      } catch (error) {
        return waitFor(error);
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
        return waitFor(error);
      }
      return {
        to: 'clean',
        provisionerOperation: null,
        effect: (trx) => failContainer(trx, operation),
      };
    },

    /** Ports and domains go back only when the provisioner says that nothing of the site is left. */
    async clean(operation) {
      const site = await siteOf(operation);
      const request = requestOf(operation);
      try {
        const { provisioner_operation: id } = operation;
        if (id === null) {
          const started = await provisioner.deprovision(site, request);
          if (started !== null) return { to: 'clean', provisionerOperation: started };
        } else {
          const known = await provisioner.operation(id, request);
          if (known?.status === 'queued' || known?.status === 'running') return 'wait';
        }
        const status = await provisioner.site(site, request);
        if (status !== null && status.reason !== 'Removed') return 'wait';
        if (status === null && !(await isForgotten(site, request))) return 'wait';
      } catch (error) {
        return waitFor(error);
      }
      return {
        to: operation.kind === 'deprovision' ? 'succeeded' : 'failed',
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

/** A text that is already gone, a tombstone, or beyond reading is left as it is. */
function withTombstone(current: string | null, site: string): string | null {
  if (current === null) return null;
  const parsed = parseManifest(current, `${site}.yaml`);
  if (!parsed.ok || parsed.manifest.state === 'absent') return current;
  return formatManifest({ ...parsed.manifest, state: 'absent' });
}

function failureOf({ reason, steps }: ProvisionerOperation): string {
  const failed = steps.find(({ error }) => error !== undefined);
  return (
    reason ?? (failed ? `${failed.target} ${failed.key}: ${failed.error}` : 'the provisioner gave no reason')
  );
}

/** Following is level-triggered: a provisioner or repository that is away is asked again. */
function waitFor(error: unknown): StepOutcome {
  if (error instanceof ProvisionerError || error instanceof SitesRepoError) return 'wait';
  throw error;
}
