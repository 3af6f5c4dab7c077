import { setTimeout as delay } from 'node:timers/promises';
import { RetryableError } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Identity } from '../../../base/ownership.ts';
import { addressOf } from '../client/address.ts';
import type { KubernetesClient } from '../client/contract.ts';
import { faultReason } from '../client/errors.ts';
import type { KubernetesObject, ObjectAddress } from '../client/kinds.ts';
import type { Copies } from './state/copies.ts';
import { foreignFields, removalPatch } from './state/drift.ts';
import { isOurs, MANAGER, ordinalOf, withMark } from './state/mark.ts';
import { resourceKey } from './state/object-spec.ts';
import { withReplicas } from './state/pod-number.ts';

/** Attempts of one write while others change the same object; the pauses between them grow. */
const ATTEMPTS = 5;
const PAUSE_MS = 50;

interface WriterDeps {
  readonly client: KubernetesClient;
  readonly copies: Copies;
  readonly identity: Identity;
  /** The ordinal of the revision in force: later revisions have greater ones. `null`: unknown. */
  ordinal(): Promise<number | null>;
  readonly log: Log;
}

interface ApplyTo {
  /** Or `NO_SITE`. */
  readonly site: string;
  readonly hash: string;
  /** The manifest allows Tagyard to take over an object of others. */
  readonly adopt?: boolean;
  /** The object was observed: it is read if the copies don't have it. */
  readonly isPresent?: boolean;
  /** The first number of pods of a Deployment whose number others set later; `null`: for all other objects. */
  readonly initialReplicas?: number | null;
}

/** Writes objects with our mark, and waits until the copies have them. */
export class Writer {
  readonly #deps: WriterDeps;

  constructor(deps: WriterDeps) {
    this.#deps = deps;
  }

  /**
   * Applies the object, and removes what others have added to it. Fields of others are taken over only where the object has
   * our mark or may be adopted.
   */
  async apply(object: KubernetesObject, to: ApplyTo, signal: AbortSignal): Promise<void> {
    const { client, copies, identity, log } = this.#deps;
    const address = addressOf(object);
    const marked = withMark(object, { ...to, identity, ordinal: await this.#ordinal(copies.find(address)) });
    await copies.writing(
      address,
      () =>
        persistently(signal, async (isFirst) => {
          const copy = copies.find(address);
          const isRead = copy === undefined ? to.isPresent === true : !isFirst;
          const found = isRead ? ((await client.get(address, signal)) ?? undefined) : copy;
          const existing = await this.#removeForeign(address, found, signal);
          const force = to.adopt === true || (existing !== undefined && isOurs(identity, existing));
          const sent = withReplicas(marked, existing, to.initialReplicas ?? null);
          const applied = await client.apply(sent, { manager: MANAGER, force }, signal);
          for (const warning of applied.warnings) log.warn({ object: resourceKey(address) }, warning);
          return applied.object;
        }),
      signal,
    );
  }

  /** Deletes this object; another one of the same name stays. */
  async remove(address: ObjectAddress, uid: string, signal: AbortSignal): Promise<void> {
    const { client, copies } = this.#deps;
    const existing = copies.find(address);
    // Others have deleted it, and may have made another one.
    if (existing === undefined || existing.metadata.uid !== uid) return;
    await this.#ordinal(existing);
    const remove = async () => {
      await client.delete(address, uid, signal);
      return null;
    };
    await copies.writing(address, remove, signal);
  }

  /**
   * Our ordinal. Throws if a newer revision was applied to the object: another provisioner, which has taken over, did that.
   */
  async #ordinal(existing: KubernetesObject | undefined): Promise<number | null> {
    const own = await this.#deps.ordinal();
    const theirs = existing === undefined ? null : ordinalOf(existing);
    if (existing === undefined || theirs === null || own === null || theirs <= own) return own;
    throw new RetryableError(
      `${resourceKey(addressOf(existing))} has a newer revision (${theirs}) than this provisioner (${own}): another one has taken over. If none has, remove the annotation tagyard/ordinal`,
    );
  }

  /** Removes what others have added: an apply can't, as none has set it. Returns the object as it is afterwards. */
  async #removeForeign(
    address: ObjectAddress,
    existing: KubernetesObject | undefined,
    signal: AbortSignal,
  ): Promise<KubernetesObject | undefined> {
    const { client, identity, log } = this.#deps;
    let found = existing ?? null;
    for (let left = ATTEMPTS; found !== null && isOurs(identity, found); left -= 1) {
      const fields = foreignFields(found).filter(({ isRemoved }) => isRemoved);
      if (fields.length === 0) return found;
      log.warn(
        {
          object: resourceKey(address),
          fields: fields.map(({ path, manager }) => `${path} (by ${manager})`),
        },
        'removes what others have added to an object',
      );
      try {
        return (await client.patch(address, removalPatch(found, fields), signal)) ?? undefined;
      } catch (error) {
        // The copy isn't the newest version, so the patch's test of the version has failed.
        if (left <= 1 || !['invalid', 'changed'].includes(faultReason(error) ?? '')) throw error;
        found = await client.get(address, signal);
      }
    }
    return found ?? undefined;
  }
}

/** Calls `work` again if others have changed the object at the same time. */
async function persistently<Result>(
  signal: AbortSignal,
  work: (isFirst: boolean) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(attempt === 1);
    } catch (error) {
      if (attempt === ATTEMPTS || faultReason(error) !== 'changed') throw error;
      await delay(PAUSE_MS * 2 ** attempt * Math.random(), undefined, { signal });
    }
  }
}
