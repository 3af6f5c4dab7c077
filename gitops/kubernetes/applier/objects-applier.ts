import { RetryableError, TerminalError } from '../../../base/errors.ts';
import { CONTAINER_ROLES, type LoadedManifest } from '../../../sites/manifest/containers.ts';
import type { Applier, Change, Observed, Resource, Scope } from '../../appliers/contract.ts';
import { planResources } from '../../appliers/plan.ts';
import { objectKey } from '../client/address.ts';
import type { Kind, ObjectAddress } from '../client/kinds.ts';
import type { Cluster } from './cluster.ts';
import { objectName } from './objects/names.ts';
import { observeObjects } from './observation.ts';
import { OBJECTS, siteResources } from './site-resources.ts';
import type { ObjectRef, ObjectSpec } from './state/object-spec.ts';
import { type DeployedSite, SecretsInUse } from './state/secrets-in-use.ts';

const KINDS = [
  'Secret',
  // Earlier versions made one for each Secret, as its owner. It is removed together with the Secret.
  'ConfigMap',
  'Service',
  'NetworkPolicy',
  'PodDisruptionBudget',
  'HorizontalPodAutoscaler',
] as const satisfies readonly Kind[];

/**
 * Applies the objects that the pods of a site need, and those of its client. Secrets outlive the pods that name them.
 */
export function objectsApplier(cluster: Cluster): Applier<ObjectSpec, ObjectRef> {
  const { client, copies, clients, writer, namespace } = cluster;
  const secretsInUse = new SecretsInUse(client, namespace);
  const background = new AbortController();

  async function observe(desired: readonly Resource<ObjectSpec>[], signal: AbortSignal, scope?: Scope) {
    await copies.ready(signal);
    const watching = { target: OBJECTS.target, kinds: KINDS };
    const observed = await observeObjects(cluster, watching, { desired, scope, signal });
    return withClientProblems(desired, await withoutUsed(desired, observed, signal));
  }

  /**
   * Without the Secrets that no site wants any more and a ReplicaSet still names: a restart of an old pod and a return
   * to an earlier template need them. A ConfigMap stays as long as the Secret of its name.
   */
  async function withoutUsed(
    desired: readonly Resource<ObjectSpec>[],
    observed: readonly Observed<ObjectRef>[],
    signal: AbortSignal,
  ): Promise<readonly Observed<ObjectRef>[]> {
    const nameOf = (of: { readonly address: ObjectAddress }) => objectKey(of.address);
    const secrets = desired.filter(({ spec }) => spec.address.kind === 'Secret');
    const wanted = new Set(secrets.map(({ spec }) => nameOf(spec)));
    const sites = new Set(desired.map(({ site }) => site));
    const isOld = ({ ref }: Observed<ObjectRef>) =>
      ref.address.kind === 'ConfigMap' || (ref.address.kind === 'Secret' && !wanted.has(nameOf(ref)));
    const deployed = new Map<string, DeployedSite>();
    for (const one of observed) {
      const { site } = one.owner;
      const { namespace: place } = one.ref.address;
      if (site === undefined || !sites.has(site) || !isOld(one) || wanted.has(nameOf(one.ref))) continue;
      const deployments = CONTAINER_ROLES.map((role) =>
        copies.find({ kind: 'Deployment', namespace: place, name: objectName(site, role) }),
      );
      deployed.set(`${place}/${site}`, { site, namespace: place, deployments });
    }
    const used = await secretsInUse.of([...deployed.values()], signal);
    const isKept = (name: string) => wanted.has(name) || used.has(name);
    return observed.filter((one) => !isOld(one) || !isKept(nameOf(one.ref)));
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
        await writer.apply(spec.reveal(), { site, hash, adopt, isPresent: observed !== undefined }, signal);
      } else if (observed !== undefined) {
        const { address, uid, client } = observed.ref;
        await writer.remove(address, uid, signal);
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
