import { RetryableError, TerminalError } from '../../../base/errors.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import type { Applier, Change, Observed, Resource, Scope } from '../../appliers/contract.ts';
import { planResources } from '../../appliers/plan.ts';
import type { Kind } from '../client/kinds.ts';
import type { Cluster } from './cluster.ts';
import { observeObjects } from './observation.ts';
import { OBJECTS, siteResources } from './site-resources.ts';
import type { ObjectRef, ObjectSpec } from './state/object-spec.ts';

/** The kinds of the target's objects, besides Secrets. */
const KINDS = [
  'Service',
  'NetworkPolicy',
  'PodDisruptionBudget',
  'HorizontalPodAutoscaler',
] as const satisfies readonly Kind[];

/**
 * Applies the objects that the pods of a site need, and those of its client. Secrets outlive the pods that name them.
 */
export function objectsApplier(cluster: Cluster): Applier<ObjectSpec, ObjectRef> {
  const { copies, clients, writer, secrets } = cluster;
  const background = new AbortController();

  async function observe(desired: readonly Resource<ObjectSpec>[], signal: AbortSignal, scope?: Scope) {
    await copies.ready(signal);
    const rest = desired.filter((resource) => !isSecret(resource));
    const sites = new Set(desired.map(({ site }) => site));
    const observed = await Promise.all([
      secrets.observe(desired.filter(isSecret), scope, { sites, signal }),
      observeObjects(cluster, { target: OBJECTS.target, kinds: KINDS }, { desired: rest, scope, signal }),
    ]);
    return withClientProblems(desired, observed.flat());
  }

  /**
   * A problem of a client's own objects is reported on an object of its sites. A change of this object repairs them.
   */
  function withClientProblems(
    desired: readonly Resource<ObjectSpec>[],
    observed: readonly Observed<ObjectRef>[],
  ): readonly Observed<ObjectRef>[] {
    const problems = new Map<string, string>();
    const seen = new Set<string>();
    for (const { key, spec } of desired.toSorted((a, b) => (a.key < b.key ? -1 : 1))) {
      const { client } = spec.manifest;
      if (seen.has(client)) continue;
      seen.add(client);
      const problem = clients.problemOf(client);
      if (problem !== null) problems.set(key, problem);
    }
    return observed.map((one) => {
      const found = problems.get(one.key);
      return found === undefined || one.owner.kind === 'foreign' || one.hash === null
        ? one
        : { ...one, hash: null, found };
    });
  }

  const planning = {
    ...OBJECTS,
    desired: (manifest: LoadedManifest) => siteResources(manifest, OBJECTS.target, cluster.render),
    edition: ({ site }: LoadedManifest) => cluster.edition(site),
    plan: planResources,
  } as const;

  return {
    ...planning,

    async observe(desired, signal, scope) {
      clients.want(
        desired.map(({ spec }) => spec.manifest),
        scope?.sites ?? null,
      );
      const ofSecrets = desired.filter(isSecret);
      secrets.want(ofSecrets, scope?.sites ?? null);
      await copies.ready(signal);
      await secrets.check(ofSecrets, signal);
      const observed = await observe(desired, signal, scope);
      if (scope === undefined) clients.startRemoval(background.signal);
      return observed;
    },

    preview: () => ({
      ...planning,
      observe,
      async apply() {
        throw new TerminalError('a preview applies nothing');
      },
    }),

    async apply({ desired, observed, op, key, site }: Change<ObjectSpec, ObjectRef>, signal) {
      if (desired !== undefined) {
        const { spec, hash, adopt } = desired;
        await clients.ensure(spec.manifest, adopt, signal);
        await notEnding(cluster, spec, signal);
        const isPresent = observed !== undefined;
        if (isSecret(desired)) await secrets.apply(desired, observed, signal);
        else await writer.apply(spec.reveal(), { site, hash, adopt, isPresent }, signal);
      } else if (observed !== undefined) {
        const { address, uid, client } = observed.ref;
        if (address.kind === 'Secret') await secrets.remove(observed.ref, signal);
        else await writer.remove(address, uid, signal);
        if (client !== null) await clients.settle(client, signal);
      } else {
        throw new TerminalError(`the change ${op} ${key} has neither a desired nor an observed object`);
      }
    },

    events: (signal) => copies.events(signal),

    async close() {
      background.abort();
      await clients.ended();
    },
  };
}

function isSecret({ spec }: Resource<ObjectSpec>): boolean {
  return spec.address.kind === 'Secret';
}

/** Waits until the object isn't being deleted any more, because a change of it wouldn't last. */
export async function notEnding(
  { copies }: Cluster,
  { address }: ObjectSpec,
  signal: AbortSignal,
): Promise<void> {
  const isDeletionOver = () => copies.find(address)?.metadata.deletionTimestamp === undefined;
  if (isDeletionOver() || (await copies.until(address, isDeletionOver, { signal }))) return;
  throw new RetryableError(
    `Kubernetes: ${address.kind} ${address.name} is being deleted and still there: see its finalizers`,
  );
}
