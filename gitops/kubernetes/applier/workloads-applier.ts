import { TerminalError } from '../../../base/errors.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import type { Applier, ApplyRun, Change, Resource, Scope } from '../../appliers/contract.ts';
import { planResources } from '../../appliers/plan.ts';
import type { KubernetesObject } from '../client/kinds.ts';
import type { Cluster } from './cluster.ts';
import { notEnding } from './objects-applier.ts';
import { observeObjects } from './observation.ts';
import { earlierTemplate, RolloutFailures, rolledOut } from './rollout.ts';
import { siteResources, WORKLOADS } from './site-resources.ts';
import { deploymentState, isRolledOut, outageOf } from './state/deployment.ts';
import { EARLIER } from './state/mark.ts';
import { type ObjectRef, type ObjectSpec, resourceKey } from './state/object-spec.ts';
import { revisionNumber } from './state/replica-sets.ts';

/**
 * Applies a site's Deployments, and waits until they are rolled out. A template whose pods don't become available is
 * replaced by the previous one, whose pods continue to serve.
 */
export function workloadsApplier(cluster: Cluster): Applier<ObjectSpec, ObjectRef> {
  const { client, copies, clients, writer, wanted, podOutages } = cluster;
  const failures = new RolloutFailures();
  let rollouts = 0;

  async function observe(desired: readonly Resource<ObjectSpec>[], signal: AbortSignal, scope?: Scope) {
    await copies.ready(signal);
    return await observeObjects(
      cluster,
      {
        target: WORKLOADS.target,
        kinds: ['Deployment'],
        problemOf({ spec, hash }, found) {
          if (isOff(spec, found)) return { found: 'scaled to no pod' };
          const mayStart = spec.initialReplicas === 0;
          const outage = outageOf(found, { mayStart, isProven: failures.isProven(hash) });
          // Not a change by others: an earlier process began the rollout, or pods were lost.
          if (outage !== null) return { found: outage, outdated: true };
          failures.prove(hash);
          return null;
        },
      },
      { desired, scope, signal },
    );
  }

  /** Resolves when the Deployment is rolled out. */
  async function rollOut(
    { resource, isPresent }: { readonly resource: Resource<ObjectSpec>; readonly isPresent: boolean },
    signal: AbortSignal,
    { progress = () => undefined, superseded }: ApplyRun,
  ): Promise<void> {
    const { spec, hash, site, adopt } = resource;
    const { address, manifest } = spec;
    if (spec.refusal !== null) throw new TerminalError(spec.refusal, { isOfSite: true });
    await clients.ensure(manifest, adopt, signal);
    await notEnding(cluster, spec, signal);
    const before = copies.find(address);
    const completeBefore = before !== undefined && isRolledOut(before) ? revisionNumber(before) : 0;
    const { initialReplicas } = spec;
    await writer.apply(spec.reveal(), { site, hash, adopt, isPresent, initialReplicas }, signal);
    const ended = superseded === undefined ? signal : AbortSignal.any([signal, superseded]);
    // A newer revision may repair what keeps these pods from starting, so it ends the wait for them.
    const failure = await rolledOut(spec, { ...cluster, progress }, ended).catch((error: unknown) => {
      ended.throwIfAborted();
      throw error;
    });
    if (failure === null) {
      failures.prove(hash);
      await clients.settle(manifest.client, signal);
      return;
    }
    let cause: unknown;
    const after = await goBack(resource, completeBefore, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      cause = error;
      return `couldn’t go back: ${error instanceof Error ? error.message : error}`;
    });
    const why = spec.redacted(`${failure.message}; ${after}`);
    const message = `Kubernetes: the rollout of ${address.name} failed: ${why}`;
    throw failures.errorOf(hash, message, failure, cause);
  }

  /** Applies the template that served before, if there is one. Returns what serves now, for people. */
  async function goBack(
    { spec, site, adopt }: Resource<ObjectSpec>,
    completeBefore: number,
    signal: AbortSignal,
  ): Promise<string> {
    const serves = 'the previous pods continue to serve';
    const found = copies.find(spec.address);
    const template =
      found === undefined
        ? null
        : await earlierTemplate(client, { deployment: found, before: completeBefore }, signal);
    if (template === null) {
      const isServed = found !== undefined && deploymentState(found).available > 0;
      return isServed ? serves : 'there is no earlier template to go back to';
    }
    const object = spec.reveal();
    const earlier = { ...object, spec: { ...(object.spec as object), template } };
    const { initialReplicas } = spec;
    await writer.apply(earlier, { site, hash: EARLIER, adopt, initialReplicas }, signal);
    return serves;
  }

  const planning = {
    ...WORKLOADS,
    desired: (manifest: LoadedManifest) => siteResources(manifest, WORKLOADS.target, cluster.render),
    edition: ({ site }: LoadedManifest) => cluster.edition(site),
    plan: planResources,
  } as const;

  return {
    ...planning,

    async observe(desired, signal, scope) {
      if (scope === undefined) failures.retain(new Set(desired.map(({ hash }) => hash)));
      wanted.replace(
        desired.map(({ spec }) => spec),
        scope?.sites ?? null,
      );
      return await observe(desired, signal, scope);
    },

    preview: () => ({
      ...planning,
      observe,
      async apply() {
        throw new TerminalError('a preview applies nothing');
      },
    }),

    async apply({ desired, observed, op, key }: Change<ObjectSpec, ObjectRef>, signal, run = {}) {
      if (desired !== undefined) {
        rollouts += 1;
        const isPresent = observed !== undefined;
        await rollOut({ resource: desired, isPresent }, signal, run).finally(() => {
          rollouts -= 1;
        });
      } else if (observed !== undefined) {
        await writer.remove(observed.ref.address, observed.ref.uid, signal);
      } else {
        throw new TerminalError(`the change ${op} ${key} has neither a desired nor an observed object`);
      }
    },

    isBringingUp: () => rollouts > 0,
    faultOf: (site) => podOutages.faultOf(site),
    serving: (site) => podOutages.serving(site).map(resourceKey),
  };
}

/** An autoscaler is off while the number of pods is 0. Source: k8s.io/api, autoscaling/v2, ScalingActive. */
function isOff({ initialReplicas }: ObjectSpec, found: KubernetesObject): boolean {
  return (initialReplicas ?? 0) > 0 && deploymentState(found).replicas === 0;
}
