import { formatManifest } from '../../sites/manifest/load.ts';
import { readManifest } from '../../sites/manifest/read.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import { SitesRepoError } from '../../sites/repo/errors.ts';
import { ProvisionerError } from '../clients/provisioner-client.ts';
import type { Context } from '../context/context.ts';
import type { Database } from '../db/database.ts';
import { withoutSecrets } from '../db/manifest-view.ts';
import { MANAGEMENT_ERRORS } from '../http/errors.ts';
import type { SagaStep } from '../lifecycle/steps.ts';
import { releasePorts } from '../ports/ports.repository.ts';
import { releaseAllDomains } from '../records/claims.repository.ts';
import { committedRevision, moveContainer } from '../records/containers.repository.ts';
import type { OperationRow } from '../records/operations.repository.ts';
import { recordSite, releaseHostnames } from '../records/sites.repository.ts';
import type { StepFunction, StepOutcome } from './outcome.ts';

/** The steps of a creation until the provisioner accepts it, and the rollback (`withdraw`). */
export function provisionSteps(
  context: Context,
): Record<Extract<SagaStep, 'commit' | 'provision' | 'withdraw'>, StepFunction> {
  const { db, repo, provisioner, log } = context;

  return {
    async commit(operation) {
      const manifest = plannedManifest(operation);
      try {
        const { revision } = await repo.commit({
          ...signed(operation, manifest.site, 'created through the API'),
          subject: `Create ${manifest.site}`,
          edit: async (current) => {
            if (current !== null && !(await isOf(current, manifest))) throw new SiteTaken(manifest.site);
            return current ?? formatManifest(manifest);
          },
        });
        return { to: 'provision', revision };
      } catch (error) {
        if (error instanceof SiteTaken) return withdraw('site_taken', error);
        if (!(error instanceof SitesRepoError)) throw error;
        // Git's own message contains paths and addresses. It is for the operator, so it is only logged.
        log.warn({ err: error, operation: operation.id }, 'the sites repository accepted no commit');
        const detail = error.refusal === null ? MANAGEMENT_ERRORS.sites_repo_unavailable[1] : error.message;
        return withdraw('sites_repo_unavailable', new Error(detail));
      }
    },

    /**
     * A creation that the provisioner doesn't answer, or can't accept now (a server error, a wrong secret), continues
     * with `follow`, because git asks for the site. Only a refusal of this manifest, or a connection that was never
     * made, ends it here.
     */
    async provision(operation) {
      const manifest = plannedManifest(operation);
      const follow = (provisionerOperation: string | null): StepOutcome => ({
        to: 'follow',
        provisionerOperation,
        effect: (trx) => recordSite(trx, withoutSecrets(manifest), { revision: null, blob: null }),
      });
      try {
        const revision = await committedRevision(db, operation.container_id);
        return follow(await provisioner.provision(manifest, revision, requestOf(operation)));
      } catch (error) {
        if (!(error instanceof ProvisionerError)) throw error;
        if (error.kind === 'unreachable') return withdraw('provisioner_unreachable', error);
        return isRefusal(error) ? withdraw('provisioner_refused', error) : follow(null);
      }
    },

    /**
     * The rollback. If the request can't have reached the provisioner, the site is deleted from git. Otherwise
     * it gets a tombstone in git, and the provisioner removes it. The ports are released at once, because another site
     * on the same ports has another loopback address.
     */
    async withdraw(operation) {
      const manifest = plannedManifest(operation);
      const isUnseen = operation.reason !== 'provisioner_refused';
      try {
        await repo.commit({
          ...signed(operation, manifest.site, operation.detail ?? 'provisioning failed'),
          subject: `Withdraw ${manifest.site}`,
          edit: async (current) => {
            if (current === null || !(await isOf(current, manifest))) return current;
            return isUnseen ? null : formatManifest({ ...manifest, state: 'absent' });
          },
        });
      } catch (error) {
        if (error instanceof SitesRepoError) return 'wait';
        throw error;
      }
      return {
        to: 'failed',
        effect: async (trx) => {
          await failContainer(trx, operation);
          await releaseAll(trx, operation.container_id);
        },
      };
    },
  };
}

class SiteTaken extends Error {
  constructor(site: string) {
    super(`the sites repository already holds a site ${site}`);
  }
}

function withdraw(
  reason: 'site_taken' | 'sites_repo_unavailable' | 'provisioner_unreachable' | 'provisioner_refused',
  error: Error,
): StepOutcome {
  return { to: 'withdraw', reason, detail: error.message };
}

/** Whether the provisioner would refuse this manifest again. `superseded` means only that git has changed since. */
export function isRefusal(error: unknown): error is ProvisionerError {
  return (
    error instanceof ProvisionerError &&
    (error.status === 409 || error.status === 422) &&
    error.code !== 'superseded'
  );
}

/** The manifest of a running creation. */
export function plannedManifest({ id, manifest }: OperationRow): Manifest {
  if (manifest === null) throw new Error(`operation ${id} has no manifest`);
  return manifest;
}

async function isOf(text: string, { site, container }: Manifest): Promise<boolean> {
  const parsed = await readManifest(text, `${site}.yaml`);
  return parsed.ok && parsed.manifest.container === container;
}

/** Site, author and trailers of a commit that an operation makes on behalf of its actor. */
export function signed(
  { actor, request_id }: Pick<OperationRow, 'actor' | 'request_id'>,
  site: string,
  reason: string,
) {
  return {
    site,
    author: { name: actor.name, email: actor.email },
    trailers: { Site: site, Actor: actor.subject, 'Request-Id': request_id, Reason: reason },
  };
}

export function requestOf({ request_id }: OperationRow): { requestId: string } {
  return { requestId: request_id };
}

/** Releases ports, domains and hostnames. The rows of `site_domains` are deleted with them. */
export async function releaseAll(db: Database, container: string): Promise<void> {
  await releaseAllDomains(db, container);
  await releasePorts(db, container);
  await releaseHostnames(db, container);
}

export async function failContainer(db: Database, operation: OperationRow): Promise<void> {
  const { container_id, actor, request_id, reason, detail } = operation;
  const cause = { actor: actor.subject, requestId: request_id, revision: null, reason, detail };
  await moveContainer(db, container_id, 'failed', cause);
}
