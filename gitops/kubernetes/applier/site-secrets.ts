import type { Clock } from '../../../base/clock.ts';
import type { Identity } from '../../../base/ownership.ts';
import { CONTAINER_ROLES } from '../../../sites/manifest/containers.ts';
import type { Observed, Resource, Scope } from '../../appliers/contract.ts';
import { addressOf, objectKey } from '../client/address.ts';
import type { KubernetesClient } from '../client/contract.ts';
import { faultReason } from '../client/errors.ts';
import type { KubernetesObject, ObjectAddress } from '../client/kinds.ts';
import { objectName } from './objects/names.ts';
import { ownedBy, secretRecord } from './objects/secret.ts';
import { afterRemoval, isSecretThere } from './secret-presence.ts';
import { OBJECTS } from './site-resources.ts';
import type { Copies } from './state/copies.ts';
import { isOurs, markOf, NO_SITE } from './state/mark.ts';
import { type ObjectRef, type ObjectSpec, resourceKey } from './state/object-spec.ts';
import { secretsNamedBy } from './state/replica-sets.ts';
import { foreignRecord, foreignSecret, unconfirmedRemoval } from './state/secret-faults.ts';
import { type DeployedSite, SecretsInUse } from './state/secrets-in-use.ts';
import { UnconfirmedRemovals } from './state/unconfirmed-removals.ts';
import type { Writer } from './writer.ts';

/** Each Secret is checked at least once in this time. */
const CHECK_MS = 60 * 60_000;
/** A rollout doesn't check again what was checked in this time. */
const FRESH_MS = 30_000;
/** How many checks of one observation run at once. */
const WIDTH = 8;
interface SiteSecretsDeps {
  readonly client: KubernetesClient;
  readonly copies: Copies;
  readonly writer: Writer;
  readonly identity: Identity;
  /** The namespace of all objects; `null`: each client has its own. */
  readonly namespace: string | null;
  readonly clock: Clock;
  /** 0 to below 1. */
  readonly random: () => number;
}

/**
 * The Secrets of sites. The account may only create Secrets, so a record of each (a ConfigMap) is watched. It is
 * made before the Secret and owns it, so the cluster removes the Secret after the record. The dry run of a creation
 * shows whether a Secret is there.
 */
export class SiteSecrets {
  readonly #deps: SiteSecretsDeps;
  readonly #inUse: SecretsInUse;
  /** The desired Secrets of this host, by `<namespace>/<name>`. */
  readonly #wanted = new Map<string, Resource<ObjectSpec>>();
  /** When each Secret was last known to exist, and when it is checked next: monotonic milliseconds. */
  readonly #seenAt = new Map<string, number>();
  readonly #dueAt = new Map<string, number>();
  /** The Secrets that are missing although their record is there. */
  readonly #missing = new Set<string>();
  /** The Secrets whose record this process has seen or made: once a record is gone, the cluster removes its Secret. */
  readonly #known = new Set<string>();
  readonly #removing: UnconfirmedRemovals;
  /** The Secrets that are being made. */
  readonly #current = new Map<string, Promise<void>>();

  constructor(deps: SiteSecretsDeps) {
    this.#deps = deps;
    this.#inUse = new SecretsInUse(deps.client, deps.namespace);
    this.#removing = new UnconfirmedRemovals(deps.clock);
  }

  /** Sets the desired Secrets: those of the whole host (`scope` is `null`), or those of the sites in `scope`. */
  want(desired: readonly Resource<ObjectSpec>[], scope: ReadonlySet<string> | null): void {
    for (const [key, { site }] of [...this.#wanted]) {
      if (scope === null || scope.has(site)) this.#wanted.delete(key);
    }
    for (const resource of desired) this.#wanted.set(objectKey(resource.spec.address), resource);
    if (scope !== null) return;
    for (const kept of [this.#seenAt, this.#dueAt, this.#missing, this.#known]) {
      for (const key of [...kept.keys()]) if (!this.#wanted.has(key)) kept.delete(key);
    }
  }

  /** Finds out which of the wanted Secrets are gone although their record is there: each about once an hour. */
  async check(desired: readonly Resource<ObjectSpec>[], signal: AbortSignal): Promise<void> {
    const { copies, clock, random } = this.#deps;
    const due: ObjectSpec[] = [];
    for (const { spec } of desired) {
      const key = objectKey(spec.address);
      if (copies.find(recordOf(spec.address)) === undefined) continue;
      const now = clock.now();
      const dueAt = this.#dueAt.get(key);
      if (dueAt !== undefined && dueAt <= now) due.push(spec);
      if (dueAt === undefined || dueAt <= now) this.#dueAt.set(key, now + CHECK_MS * (0.5 + 0.5 * random()));
    }
    const work = due.values();
    const worker = async () => {
      for (const spec of work) {
        const key = objectKey(spec.address);
        const isThere = await isSecretThere(this.#deps, spec.address, signal);
        if (isThere === false) this.#missing.add(key);
        else if (isThere) this.#seen(key);
      }
    };
    await Promise.all(Array.from({ length: Math.min(WIDTH, due.length) }, worker));
  }

  /**
   * What exists, by the records. Calls the API server only for desired Secrets with no record, as a foreign Secret may
   * have the name, and for sites with Secrets that they don't want any more.
   */
  async observe(
    desired: readonly Resource<ObjectSpec>[],
    scope: Scope | undefined,
    { sites, signal }: { readonly sites: ReadonlySet<string>; readonly signal: AbortSignal },
  ): Promise<Observed<ObjectRef>[]> {
    const { copies } = this.#deps;
    const present = await Promise.all(desired.map((resource) => this.#observed(resource, signal)));
    const wanted = new Set(desired.map(({ key }) => key));
    const records = [...copies.of('ConfigMap')].map((record) => this.#described(record));
    const unwanted = [...records, ...this.#removing.without(records)].filter(({ key, owner }) => {
      if (wanted.has(key) || owner.kind !== 'ours' || owner.site === NO_SITE) return false;
      return scope === undefined || scope.sites.has(owner.site);
    });
    // A restart of an old pod and a return to an earlier template need that template's Secret.
    const inUse = await this.#inUse.of(this.#deployed(unwanted, sites), signal);
    const unused = unwanted.filter(({ ref }) => !inUse.has(objectKey(ref.address)));
    return [...present.filter((one) => one !== null), ...unused];
  }

  async #observed(
    { key, hash, spec }: Resource<ObjectSpec>,
    signal: AbortSignal,
  ): Promise<Observed<ObjectRef> | null> {
    const { copies, identity } = this.#deps;
    const { address } = spec;
    const name = objectKey(address);
    const record = copies.find(recordOf(address));
    if (record === undefined) {
      if (!this.#isPlaced(address) || this.#known.has(name) || this.#removing.has(name)) return null;
      if ((await isSecretThere(this.#deps, address, signal)) !== true) return null;
      const { owner } = markOf(identity, { metadata: { name: address.name } });
      return { target: OBJECTS.target, key, hash: null, owner, ref: { address, uid: '', client: null } };
    }
    const described = this.#described(record);
    if (described.owner.kind === 'foreign') return described;
    this.#known.add(name);
    if (record.metadata.deletionTimestamp !== undefined) return { ...described, found: 'being deleted' };
    if (this.#missing.has(name)) return { ...described, found: 'missing' };
    // Immutable, and named by its content: there is nothing else that could differ.
    return { ...described, hash };
  }

  /** The sites among these that have one of the observed Secrets, with their Deployments. */
  #deployed(observed: readonly Observed<ObjectRef>[], sites: ReadonlySet<string>): DeployedSite[] {
    const { copies } = this.#deps;
    const found = new Map<string, DeployedSite>();
    for (const { owner, ref } of observed) {
      const { site } = owner;
      if (site === undefined || !sites.has(site)) continue;
      const { namespace } = ref.address;
      const deployments = CONTAINER_ROLES.map((role) =>
        copies.find({ kind: 'Deployment', namespace, name: objectName(site, role) }),
      );
      found.set(`${namespace}/${site}`, { site, namespace, deployments });
    }
    return [...found.values()];
  }

  #described(record: KubernetesObject): Observed<ObjectRef> {
    const { identity } = this.#deps;
    const { namespace = null, name, uid = '', labels = {} } = record.metadata;
    const address = { kind: 'Secret', namespace, name } as const;
    const { owner } = markOf(identity, record);
    const ref = { address, uid, client: labels['tagyard/client'] ?? null };
    return { target: OBJECTS.target, key: resourceKey(address), owner, hash: null, ref };
  }

  /**
   * Makes the Secret and its record if they aren't there. `observed`: what had the name when the change was planned.
   */
  async apply(
    resource: Resource<ObjectSpec>,
    observed: Observed<ObjectRef> | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (observed?.owner.kind === 'foreign') throw foreignSecret(resource.spec.address);
    const name = objectKey(resource.spec.address);
    const current = this.#current.get(name) ?? this.#make(resource, signal);
    this.#current.set(name, current);
    try {
      await current;
    } finally {
      this.#current.delete(name);
    }
  }

  async #make(resource: Resource<ObjectSpec>, signal: AbortSignal): Promise<void> {
    const { writer } = this.#deps;
    const { spec, site, hash } = resource;
    const secret = spec.reveal();
    const name = objectKey(spec.address);
    const { record, isNew } = await this.#record(resource, signal);
    this.#known.add(name);
    const create = async () => {
      try {
        await writer.create(ownedBy(record, secret), { site, hash }, signal);
        return true;
      } catch (error) {
        if (faultReason(error) === 'exists') return !isNew;
        throw error;
      }
    };
    let isMade = false;
    try {
      // A Secret of an earlier record is there until the cluster has removed it.
      isMade = await afterRemoval(create, this.#deps.clock, signal);
    } finally {
      // A record without its Secret would say that the Secret is there.
      if (!isMade && isNew) {
        await writer.remove(addressOf(record), record.metadata.uid ?? '', signal);
        this.#known.delete(name);
      }
    }
    if (!isMade)
      throw this.#removing.has(name) ? unconfirmedRemoval(spec.address, true) : foreignSecret(spec.address);
    this.#removing.end(name);
    this.#seen(name);
  }

  async #record(
    { spec, site, hash }: Resource<ObjectSpec>,
    signal: AbortSignal,
  ): Promise<{ record: KubernetesObject; isNew: boolean }> {
    const { copies, writer, identity } = this.#deps;
    const address = recordOf(spec.address);
    const found = copies.find(address);
    if (found === undefined) {
      try {
        return {
          record: await writer.create(secretRecord(spec.reveal()), { site, hash }, signal),
          isNew: true,
        };
      } catch (error) {
        if (faultReason(error) === 'exists') throw foreignRecord(address, error);
        throw error;
      }
    }
    if (!isOurs(identity, found)) throw foreignRecord(address);
    await writer.refuseNewer(found);
    return { record: found, isNew: false };
  }

  /** Makes the Secrets that a Deployment names, if they were deleted since the last check. */
  async ensure(deployment: KubernetesObject, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const { namespace = null } = deployment.metadata;
    for (const name of new Set(secretsNamedBy(deployment))) {
      const key = objectKey({ namespace, name });
      const wanted = this.#wanted.get(key);
      const seenAt = this.#seenAt.get(key);
      if (wanted === undefined || (seenAt !== undefined && clock.now() - seenAt < FRESH_MS)) continue;
      await this.apply(wanted, undefined, signal);
    }
  }

  /** Deletes the record with this uid, and resolves once the cluster has removed the Secret after it. */
  async remove({ address, uid }: ObjectRef, signal: AbortSignal): Promise<void> {
    const { clock, copies, writer } = this.#deps;
    const name = objectKey(address);
    const record = copies.find(recordOf(address));
    // Others have deleted it, and it was made again.
    if (record !== undefined && record.metadata.uid !== uid) return;
    if (record !== undefined) this.#removing.begin(this.#described(record));
    await writer.remove(recordOf(address), uid, signal);
    let isThere: boolean | null = null;
    const isGone = async () => {
      isThere = this.#isPlaced(address) && (await isSecretThere(this.#deps, address, signal));
      return isThere === false;
    };
    if (!(await afterRemoval(isGone, clock, signal))) throw unconfirmedRemoval(address, isThere);
    this.#removing.end(name);
  }

  #seen(key: string): void {
    this.#missing.delete(key);
    this.#seenAt.set(key, this.#deps.clock.now());
  }

  /** False if the namespace doesn't exist, or is being deleted with all that is in it. */
  #isPlaced({ namespace }: ObjectAddress): boolean {
    const { copies, namespace: common } = this.#deps;
    if (common !== null || namespace === null) return true;
    const found = copies.find({ kind: 'Namespace', namespace: null, name: namespace });
    return found !== undefined && found.metadata.deletionTimestamp === undefined;
  }
}

/** The record of a Secret has the same name. */
function recordOf({ namespace, name }: ObjectAddress): ObjectAddress {
  return { kind: 'ConfigMap', namespace, name };
}
