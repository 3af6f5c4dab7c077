import { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { RetryableError } from '../../../../base/errors.ts';
import { type Log, warner } from '../../../../base/log.ts';
import type { Identity } from '../../../../base/ownership.ts';
import { addressOf, objectKey, objectLabel } from '../../client/address.ts';
import type { KubernetesClient, Watched } from '../../client/contract.ts';
import type { Kind, KubernetesObject, ObjectAddress } from '../../client/kinds.ts';
import { DELIVERY_LABEL } from '../../delivery/secrets.ts';
import { haveSameManagedFields } from './drift.ts';

/** The kinds that are kept as copies by default. */
const KINDS = [
  'ResourceQuota',
  'Secret',
  'ConfigMap',
  'Service',
  'NetworkPolicy',
  'PodDisruptionBudget',
  'HorizontalPodAutoscaler',
  'Deployment',
] as const satisfies readonly Kind[];
/** Gateways write the objects of this kind all the time: their changes don't come from outside. */
const MADE: Kind = 'Lease';

/** Kinds of which only the metadata is read. */
const WITHOUT_CONTENT: ReadonlySet<Kind> = new Set(['ConfigMap', 'Secret']);

/** For how many milliseconds a read waits for a copy that can't follow the API server. */
const WAIT_MS = 10_000;
const POLL_MS = 50;
/** A rollout changes one object several times in this time: only the object after the last change is compared. */
const GATHER_MS = 200;

interface CopiesOptions {
  readonly client: KubernetesClient;
  readonly identity: Identity;
  /** The namespace of all objects; `null`: each client has its own. */
  readonly namespace: string | null;
  readonly log: Log;
  readonly waitMs?: number;
  /** The objects that are kept as copies. Default: all objects of the sites, except what is delivered to gateways. */
  readonly selection?: { readonly kinds: readonly Kind[]; readonly labels: string };
}

/**
 * Copies of all objects of this host. They follow the API server and begin with one listing of each kind. An
 * observation calls the API server only for what they lack: desired objects that aren't among them, and the ReplicaSets
 * that may still need Secrets that a site no longer wants.
 */
export class Copies {
  readonly #copies: ReadonlyMap<Kind, Watched>;
  readonly #log: Log;
  readonly #waitMs: number;
  readonly #changes = new EventEmitter().setMaxListeners(0);
  readonly #ended = new AbortController();
  /** Objects that this process is writing: their changes don't come from outside. */
  readonly #busy = new Map<string, number>();
  /** The objects as they were last written or compared. It is a change from outside if others have set fields since. */
  readonly #known = new Map<string, KubernetesObject>();

  constructor({ client, identity, namespace, log, waitMs = WAIT_MS, selection }: CopiesOptions) {
    this.#log = log;
    this.#waitMs = waitMs;
    const { kinds, labels } = selection ?? {
      kinds: KINDS,
      labels: `tagyard/instance=${identity.instance},tagyard/host=${identity.host},!${DELIVERY_LABEL}`,
    };
    const place = namespace === null ? {} : { namespace };
    const copies = kinds.map(
      (kind) =>
        [
          kind,
          client.watched({
            kind,
            labels,
            gatherMs: GATHER_MS,
            ...place,
            ...(WITHOUT_CONTENT.has(kind) ? { metadataOnly: true } : {}),
          }),
        ] as const,
    );
    // All are read: a desired one may belong to others. One namespace for all clients isn't ours and isn't read.
    if (namespace === null) {
      const namespaces = client.watched({ kind: 'Namespace', gatherMs: GATHER_MS, metadataOnly: true });
      this.#copies = new Map<Kind, Watched>([...copies, ['Namespace', namespaces]]);
    } else {
      this.#copies = new Map<Kind, Watched>(copies);
    }
    for (const [kind, copy] of this.#copies) void this.#follow(kind, copy);
  }

  /**
   * Resolves when all copies are complete and follow the API server; throws `RetryableError` if that takes too long.
   */
  async ready(signal: AbortSignal): Promise<void> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(this.#waitMs)]);
    try {
      await Promise.all([...this.#copies].map(([kind, copy]) => this.#isReady(kind, copy, limited)));
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }

  async #isReady(kind: Kind, copy: Watched, signal: AbortSignal): Promise<void> {
    try {
      await copy.ready(signal);
    } catch (cause) {
      if (copy.fault !== null) throw copy.fault;
      throw new RetryableError(`Kubernetes: the ${kind}s couldn’t be listed in time`, { cause });
    }
    while (copy.fault !== null) {
      await delay(POLL_MS, undefined, { signal }).catch(() => {
        throw copy.fault ?? new RetryableError(`Kubernetes: the watch of ${kind}s has not resumed in time`);
      });
    }
  }

  of(kind: Kind): Iterable<KubernetesObject> {
    return this.#copies.get(kind)?.objects.values() ?? [];
  }

  *all(kinds: readonly Kind[]): Iterable<KubernetesObject> {
    for (const kind of kinds) yield* this.of(kind);
  }

  find(address: ObjectAddress): KubernetesObject | undefined {
    return this.#copies.get(address.kind)?.objects.get(objectKey(address));
  }

  /**
   * Writes an object, and resolves when its copy has what was written. `write` returns the object as it is stored;
   * `null`: it was deleted.
   */
  async writing<Written extends KubernetesObject | null>(
    address: ObjectAddress,
    write: () => Promise<Written>,
    signal: AbortSignal,
  ): Promise<Written> {
    const key = objectLabel(address);
    this.#busy.set(key, (this.#busy.get(key) ?? 0) + 1);
    try {
      const written = await write();
      if (written === null) {
        await this.until(address, () => this.find(address) === undefined, { signal });
        this.#known.delete(key);
      } else {
        const { resourceVersion: version } = written.metadata;
        const copy = this.#copies.get(address.kind);
        if (version !== undefined) await copy?.reached(address, version, signal);
        const found = this.find(address);
        const isNewest = found !== undefined && found.metadata.resourceVersion === version;
        if (copy !== undefined) this.#known.set(key, isNewest ? found : written);
      }
      return written;
    } finally {
      const others = (this.#busy.get(key) ?? 1) - 1;
      if (others > 0) this.#busy.set(key, others);
      else this.#busy.delete(key);
      // Others may have changed it since.
      const now = this.find(address);
      if (now !== undefined) this.#compare(key, now);
    }
  }

  /**
   * Resolves to true when `isSo` returns true, and to false after `timeoutMs`. `isSo` is called at once, after each
   * change of the object, and if there was none for `againMs()` milliseconds. `againMs` is called after each call of
   * `isSo`.
   */
  async until(
    address: ObjectAddress,
    isSo: () => boolean | Promise<boolean>,
    {
      signal,
      timeoutMs = this.#waitMs,
      againMs = () => timeoutMs,
    }: { readonly signal: AbortSignal; readonly timeoutMs?: number; readonly againMs?: () => number },
  ): Promise<boolean> {
    const end = performance.now() + timeoutMs;
    const key = objectLabel(address);
    let next = Promise.withResolvers<void>();
    const resume = () => next.resolve();
    this.#changes.on(key, resume);
    signal.addEventListener('abort', resume);
    try {
      for (;;) {
        signal.throwIfAborted();
        // A change while `isSo` runs counts, too.
        next = Promise.withResolvers();
        if (await isSo()) return true;
        const left = end - performance.now();
        if (left <= 0) return false;
        const timer = setTimeout(resume, Math.min(left, againMs()));
        await next.promise;
        clearTimeout(timer);
      }
    } finally {
      this.#changes.off(key, resume);
      signal.removeEventListener('abort', resume);
    }
  }

  /**
   * Calls `note` after each change of an object of this kind, until `signal` aborts; with `null` after the listing of
   * all. What it throws is logged, because it must not end the loop over the changes.
   */
  onChange(kind: Kind, note: (address: ObjectAddress | null) => void, signal: AbortSignal): void {
    const warn = warner((message) =>
      this.#log.warn({}, `a change of the ${kind}s can’t be noted: ${message}`),
    );
    const listener = (address: ObjectAddress | null) => {
      try {
        note(address);
        warn(null);
      } catch (error) {
        warn(error);
      }
    };
    this.#changes.on(kind, listener);
    signal.addEventListener('abort', () => this.#changes.off(kind, listener), { once: true });
  }

  /** An item after changes from outside; changes that arrive before it is read make one item. */
  async *events(signal: AbortSignal): AsyncIterable<void> {
    const ended = AbortSignal.any([signal, this.#ended.signal]);
    let pending = false;
    let resume = () => {};
    const note = () => {
      pending = true;
      resume();
    };
    this.#changes.on('outside', note);
    ended.addEventListener('abort', note);
    try {
      while (!ended.aborted) {
        if (!pending) await new Promise<void>((resolve) => (resume = resolve));
        pending = false;
        if (!ended.aborted) yield;
      }
    } finally {
      this.#changes.off('outside', note);
      ended.removeEventListener('abort', note);
    }
  }

  async close(): Promise<void> {
    this.#ended.abort();
    await Promise.all([...this.#copies.values()].map((copy) => copy.close()));
  }

  async #follow(kind: Kind, copy: Watched): Promise<void> {
    const { signal } = this.#ended;
    const keyOf = (object: KubernetesObject) => objectLabel(addressOf(object));
    try {
      await copy.ready(signal);
      // The listing is no change from outside. No event is missed: none can arrive before `changes` is called.
      const changes = copy.changes(signal);
      for (const object of kind === MADE ? [] : copy.objects.values()) this.#known.set(keyOf(object), object);
      this.#changes.emit(kind, null);
      for await (const { type, object } of changes) {
        const key = keyOf(object);
        this.#changes.emit(key);
        this.#changes.emit(kind, addressOf(object));
        if (kind === MADE) continue;
        if (type !== 'deleted') this.#compare(key, object);
        else if (!this.#busy.has(key) && this.#known.delete(key)) this.#changes.emit('outside');
      }
    } catch {
      // The loop ends with the copies; a copy that can't follow the API server has a `fault` itself.
    }
  }

  #compare(key: string, now: KubernetesObject): void {
    if (this.#busy.has(key)) return;
    const known = this.#known.get(key);
    if (known === now) return;
    this.#known.set(key, now);
    if (known === undefined || !haveSameManagedFields(known, now)) this.#changes.emit('outside');
  }
}
