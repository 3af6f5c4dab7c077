import { z } from 'zod';
import { RetryableError, TerminalError } from '../../../base/errors.ts';
import { KeyedMutex } from '../../../base/limit.ts';
import type { Log } from '../../../base/log.ts';
import { contentHash, type Identity } from '../../../base/ownership.ts';
import { addressOf } from '../client/address.ts';
import type { KubernetesClient } from '../client/contract.ts';
import type { Kind, KubernetesObject } from '../client/kinds.ts';
import type { Copies } from './state/copies.ts';
import { isRolledOut } from './state/deployment.ts';
import { type ClientObject, DesiredSites, type RenderClient } from './state/desired-sites.ts';
import { objectDrift } from './state/drift.ts';
import { isOurs, markOf, NO_SITE } from './state/mark.ts';
import type { RenderedFor } from './state/object-spec.ts';
import { amountOf } from './state/quantity.ts';
import type { Writer } from './writer.ts';

/** A namespace in which others have objects of these kinds isn't removed. */
const KEEPING = [
  'Pod',
  'Service',
  'ConfigMap',
  'Secret',
  'PersistentVolumeClaim',
  'Deployment',
  'ReplicaSet',
  // These may have no pods at the moment.
  'StatefulSet',
  'DaemonSet',
  'Job',
  'CronJob',
  'Ingress',
  'NetworkPolicy',
  'ResourceQuota',
] as const satisfies readonly Kind[];
/** What the cluster itself puts into every namespace. */
const GIVEN: ReadonlySet<string> = new Set(['ConfigMap/kube-root-ca.crt']);

const quotaSpec = z.looseObject({ hard: z.record(z.string(), z.string()) });

interface ClientObjectsDeps {
  readonly client: KubernetesClient;
  readonly copies: Copies;
  readonly writer: Writer;
  readonly identity: Identity;
  readonly log: Log;
  readonly render: RenderClient;
}

/**
 * A client's namespace, with its quota and its default policy: made before the first object of a site, removed last.
 */
export class ClientObjects {
  readonly #deps: ClientObjectsDeps;
  readonly #sites: DesiredSites;
  /**
   * By object of the API server: the rendered object that was found equal to it. Most writes meet the same two
   * again, and needn't compare them.
   */
  readonly #right = new WeakMap<KubernetesObject, KubernetesObject>();
  /** One write of a client at a time. */
  readonly #writes = new KeyedMutex();
  /** By uid of a namespace that no site needs: the objects of others for which it stays, as they were last logged. */
  readonly #kept = new Map<string, string>();
  #removal: Promise<void> = Promise.resolve();

  constructor(deps: ClientObjectsDeps) {
    this.#deps = deps;
    this.#sites = new DesiredSites(deps.render);
  }

  /** Sets the desired sites: those of the whole host (`scope` is `null`), or those in `scope`. */
  want(manifests: Iterable<RenderedFor>, scope: ReadonlySet<string> | null): void {
    this.#sites.replace(manifests, scope);
  }

  /** What is wrong with a client's objects, except the quota's size; `null`: nothing, or the namespace is missing. */
  problemOf(client: string): string | null {
    const { copies } = this.#deps;
    const objects = this.#sites.objectsOf(client).map(({ object }) => object);
    const isNew = objects.some((object) => object.kind === 'Namespace' && !copies.find(addressOf(object)));
    if (isNew) return null;
    for (const object of objects) {
      const found = copies.find(addressOf(object));
      const problem = found === undefined ? 'missing' : objectDrift(object, found);
      if (problem !== null) return `${object.kind} ${object.metadata.name}: ${problem}`;
    }
    return null;
  }

  /** Makes the client's objects as its sites need them; without a call if the copies show that they are so already. */
  async ensure(manifest: RenderedFor, adopt: boolean, signal: AbortSignal): Promise<void> {
    this.#sites.put(manifest);
    await this.#writes.run(manifest.client, () =>
      this.#write(manifest.client, { adopt, isRaising: true }, signal),
    );
  }

  /** Lowers the quota to what the sites need, once no rollout needs more. */
  async settle(client: string, signal: AbortSignal): Promise<void> {
    // Checked first: going through all Deployments once for each site would take longer than all the rest.
    if (!this.#sites.hasClient(client) || this.#sites.objectsOf(client).every((one) => this.#isRight(one)))
      return;
    const places = new Set(this.#sites.objectsOf(client).map(({ object }) => object.metadata.namespace));
    // A site whose manifest can't be read now still needs room for its pods.
    const isKnown = ({ metadata }: KubernetesObject) =>
      this.#sites.has(metadata.labels?.['tagyard/site'] ?? '');
    for (const one of this.#deps.copies.of('Deployment')) {
      if (places.has(one.metadata.namespace) && !(isRolledOut(one) && isKnown(one))) return;
    }
    await this.#writes.run(client, () => this.#write(client, { adopt: false, isRaising: false }, signal));
  }

  /** Starts to remove the namespaces that no site needs, in the background. */
  startRemoval(signal: AbortSignal): void {
    this.#removal = this.#removal
      .then(() => this.#removeUnused(signal))
      .catch((error: unknown) => {
        this.#deps.log.warn({ err: error }, 'could not remove the namespaces that no site needs');
      });
  }

  async ended(): Promise<void> {
    await this.#removal;
  }

  async #write(
    client: string,
    { adopt, isRaising }: { adopt: boolean; isRaising: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { copies, writer, identity } = this.#deps;
    for (const one of this.#sites.objectsOf(client)) {
      if (this.#isRight(one)) continue;
      const { object: rendered, hash: ownHash } = one;
      const found = copies.find(addressOf(rendered));
      const object = isRaising && found !== undefined ? withRoomOf(rendered, found) : rendered;
      const hash = object === rendered ? ownHash : contentHash(object);
      if (found !== undefined) {
        const { owner, hash: marked } = markOf(identity, found);
        if (owner.kind === 'foreign' && !adopt) {
          throw new TerminalError(
            `Kubernetes: ${object.kind} ${object.metadata.name} belongs to ${owner.by}. Remove it, or take it over by adopt: true`,
          );
        }
        if (found.metadata.deletionTimestamp !== undefined) {
          throw new RetryableError(
            `Kubernetes: ${object.kind} ${object.metadata.name} is being deleted; it is made again once it is gone`,
          );
        }
        const isRight = marked !== null && hash.startsWith(marked) && objectDrift(object, found) === null;
        if (isRight) continue;
      }
      await writer.apply(object, { site: NO_SITE, hash, adopt }, signal);
    }
  }

  /** True if the API server has the object as it was rendered. */
  #isRight({ object, hash }: ClientObject): boolean {
    const { copies, identity } = this.#deps;
    const found = copies.find(addressOf(object));
    if (found === undefined || this.#right.get(found) === object) return found !== undefined;
    const { hash: marked } = markOf(identity, found);
    const isRight = marked !== null && hash.startsWith(marked) && objectDrift(object, found) === null;
    if (isRight) this.#right.set(found, object);
    return isRight;
  }

  async #removeUnused(signal: AbortSignal): Promise<void> {
    const { copies, identity, writer, log } = this.#deps;
    const needed = new Set(
      [...this.#sites.clients].flatMap((client) =>
        this.#sites.objectsOf(client).map(({ object: { metadata } }) => metadata.namespace ?? metadata.name),
      ),
    );
    const unneeded = [...copies.of('Namespace')].flatMap((namespace) => {
      const { name, uid, deletionTimestamp } = namespace.metadata;
      const isEnding = deletionTimestamp !== undefined;
      return needed.has(name) || isEnding || uid === undefined || !isOurs(identity, namespace)
        ? []
        : [{ name, uid }];
    });
    const uids = new Set(unneeded.map(({ uid }) => uid));
    for (const uid of this.#kept.keys()) if (!uids.has(uid)) this.#kept.delete(uid);
    for (const { name, uid } of unneeded) {
      const keeping = await this.#foreignIn(name, signal);
      if (keeping.length > 0) {
        const before = this.#kept.get(uid);
        this.#kept.set(uid, keeping.join());
        if (before === keeping.join()) continue;
        log.info({ namespace: name, keeping }, 'a namespace stays: there are still objects in it');
        continue;
      }
      const address = { kind: 'Namespace', namespace: null, name } as const;
      // A site of the client may have come meanwhile.
      const isWanted = [...this.#sites.clients].some((client) =>
        this.#sites.objectsOf(client).some(({ object }) => object.metadata.name === name),
      );
      if (!isWanted) await writer.remove(address, uid, signal);
    }
  }

  /** The objects for which a namespace stays: those of others, and those of our sites, until these are removed. */
  async #foreignIn(namespace: string, signal: AbortSignal): Promise<string[]> {
    const { client, identity } = this.#deps;
    const listed = await Promise.all(
      KEEPING.map(async (kind) => {
        const { items } = await client.list({ kind, namespace, metadataOnly: true }, signal);
        return items
          .filter((item) => !isOursAlone(identity, item))
          .map(({ metadata }) => `${kind}/${metadata.name}`);
      }),
    );
    return listed.flat().filter((name) => !GIVEN.has(name));
  }
}

/**
 * Whether an object is ours and doesn't keep its namespace: it belongs to no site, or a Deployment of ours has made it.
 * Pods and ReplicaSets have no mark, only the labels that their Deployment gives them.
 */
function isOursAlone(identity: Identity, object: KubernetesObject): boolean {
  const { owner } = markOf(identity, object);
  if (owner.kind === 'ours') return owner.site === NO_SITE;
  const { labels = {}, ownerReferences = [] } = object.metadata;
  return (
    ownerReferences.length > 0 &&
    labels['tagyard/instance'] === identity.instance &&
    labels['tagyard/host'] === identity.host
  );
}

/** The rendered quota, but with no less room than it has in the cluster: pods that a rollout replaces may need it. */
function withRoomOf(object: KubernetesObject, found: KubernetesObject): KubernetesObject {
  if (object.kind !== 'ResourceQuota') return object;
  const { hard } = quotaSpec.parse(object.spec);
  const now = quotaSpec.safeParse(found.spec).data?.hard ?? {};
  const hasMore = Object.entries(hard).some(([name, amount]) => amountOf(now[name] ?? '') > amountOf(amount));
  if (!hasMore) return object;
  const most = Object.entries(hard).map(([name, amount]) => {
    const present = now[name];
    return [name, present !== undefined && amountOf(present) > amountOf(amount) ? present : amount];
  });
  return { ...object, spec: { ...(object.spec as object), hard: Object.fromEntries(most) } };
}
