import { GivenUpError, QuotaReachedError, RetryableError, TerminalError } from '../../../base/errors.ts';
import type { Identity } from '../../../base/ownership.ts';
import type { Progress } from '../../appliers/contract.ts';
import type { KubernetesClient } from '../client/contract.ts';
import type { KubernetesObject } from '../client/kinds.ts';
import type { Copies } from './state/copies.ts';
import { deploymentState } from './state/deployment.ts';
import { isOurs } from './state/mark.ts';
import type { ObjectSpec } from './state/object-spec.ts';
import { type PodFault, podFault } from './state/pod-fault.ts';
import { revisionNumber, revisionsOf } from './state/replica-sets.ts';

/** How long a rollout is waited for, and when its pods are read. Milliseconds. */
export interface RolloutTimes {
  /** For this long, pods may be refused: a quota that is used up at the moment may have room a little later. */
  readonly refusedMs: number;
  /**
   * New pods that aren't ready are read after this time without progress. A lasting fault of theirs is read again after
   * the same time; otherwise the pauses grow.
   */
  readonly readMs: number;
  /** The controllers of the cluster must have judged the rollout by then. */
  readonly longestMs: number;
}

/** The progress deadline of our Deployments is ten minutes: the cluster ends a rollout before `longestMs` does. */
export const ROLLOUT_TIMES: RolloutTimes = { refusedMs: 5_000, readMs: 10_000, longestMs: 1_500_000 };

/** From this many failures in a row on, the error is terminal. */
const TERMINAL_AFTER = 3;
/** From this many on, a template that was never available isn't rolled out again. */
const GIVE_UP_AFTER = 12;
/** The longest pause between two reads of the same pods, in units of the first. */
const LONGEST_PAUSE = 6;
/** The cluster's controller itself tries again to create pods that a quota has refused. */
const WAITS_FOR_ROOM = 'waits for room in the client’s quota: a pod that ends counts until it is gone';

interface RolloutDeps {
  readonly client: KubernetesClient;
  readonly copies: Copies;
  readonly identity: Identity;
  readonly times: RolloutTimes;
  readonly progress: Progress;
}

/** Why a rollout has failed. */
interface RolloutFailure extends PodFault {
  /** Whose ResourceQuota refuses the pods: the client's, which is ours, or another one; `null`: none. */
  readonly quota: 'own' | 'other' | null;
}

/** Resolves when the Deployment's newest template is rolled out (`null`), or can't be. */
export async function rolledOut(
  spec: ObjectSpec,
  { client, copies, identity, times, progress }: RolloutDeps,
  signal: AbortSignal,
): Promise<RolloutFailure | null> {
  const { address } = spec;
  const beganAt = performance.now();
  let refusedAt: number | null = null;
  let readAt = beganAt;
  let pause = times.readMs;
  let seenBefore = false;
  const most = { updated: 0, ready: 0 };
  let noRoomAt: number | null = null;
  /** True if the passing of time alone can end the rollout or make a read due: pods are refused, or not ready. */
  let isTimed = false;
  let outcome: RolloutFailure | null = null;
  /** What keeps the new pods from being ready, as it was last read; empty: nothing is known. */
  let held = '';
  let reported = '';
  const report = (wait: string) => {
    if (wait !== reported) progress(wait === '' ? '' : `Deployment ${address.name} ${wait}`);
    reported = wait;
  };
  /** The error of the last read of pods; `null`: it succeeded. */
  let unread: unknown = null;
  /**
   * A failed read must not end the wait: the earlier template is applied again only if the rollout itself fails.
   */
  const read = (deployment: KubernetesObject, isFinal: boolean) =>
    newestPodFault(deployment, { client, isFinal }, signal).then(
      (fault) => {
        unread = null;
        return fault;
      },
      (error: unknown) => {
        signal.throwIfAborted();
        unread = error;
        return null;
      },
    );
  const unreadText = () =>
    `its pods can’t be read: ${unread instanceof Error ? unread.message : String(unread)}`;
  const isEnded = async (): Promise<boolean> => {
    const deployment = copies.find(address);
    if (deployment === undefined) {
      throw new RetryableError(`Kubernetes: Deployment ${address.name} was deleted during its rollout`);
    }
    const state = deploymentState(deployment);
    const isServing = Math.min(state.updated, state.available) >= state.replicas;
    const refused = podRefusal(deployment, { copies, identity });
    const hasNoRoom = refused?.quota === 'own';
    const isDone = state.isRolledOut && state.failure === null && isServing;
    const wait = hasNoRoom ? WAITS_FOR_ROOM : held || (unread === null ? '' : `waits: ${unreadText()}`);
    report(isDone ? '' : wait);
    const isStuck = state.updated > 0 && state.ready < state.pods;
    isTimed = isStuck || refused !== null;
    const now = performance.now();
    noRoomAt = hasNoRoom ? (noRoomAt ?? now) : null;
    if (isDone) return true;
    refusedAt = refused !== null && !hasNoRoom ? (refusedAt ?? now) : null;
    if (refusedAt !== null && now - refusedAt >= times.refusedMs) {
      outcome = refused;
      return true;
    }
    // If a template was rolled out before, the cluster sets it no deadline while none of its pods can be created.
    if (state.isLate || (noRoomAt !== null && now - noRoomAt >= state.deadlineMs)) {
      const cause = await read(deployment, true);
      const message =
        cause?.message ?? `no progress until its deadline${unread === null ? '' : `; ${unreadText()}`}`;
      outcome = cause === null && hasNoRoom ? refused : { message, isLasting: false, quota: null };
      return true;
    }
    const hasProgress = state.updated > most.updated || state.ready > most.ready;
    most.updated = Math.max(most.updated, state.updated);
    most.ready = Math.max(most.ready, state.ready);
    if (hasProgress) readAt = now;
    if (!isStuck || now - readAt < pause) return false;
    readAt = now;
    const cause = await read(deployment, false);
    // What is known of the pods stays.
    if (unread !== null) return false;
    if (cause?.isLasting && seenBefore) outcome = { ...cause, quota: null };
    seenBefore = cause?.isLasting ?? false;
    pause = seenBefore ? times.readMs : Math.min(2 * pause, LONGEST_PAUSE * times.readMs);
    held = cause === null ? '' : `waits: ${spec.redacted(cause.message)}`;
    if (!hasNoRoom) report(held);
    return outcome !== null;
  };
  // A rollout that only waits for the controllers needs no timer: each of their steps changes the copy.
  const againMs = () => (isTimed ? Math.min(times.refusedMs, times.readMs) : times.longestMs);
  const isJudged = await copies.until(address, isEnded, { signal, timeoutMs: times.longestMs, againMs });
  if (!isJudged) {
    throw new RetryableError(
      `Kubernetes: the rollout of ${address.name} doesn’t end: check that the cluster’s controllers run${unread === null ? '' : `; ${unreadText()}`}`,
      { cause: unread ?? undefined },
    );
  }
  return outcome;
}

/** What keeps the pods of a Deployment's newest template from being ready, as `podFault` says it. */
export async function newestPodFault(
  deployment: KubernetesObject,
  { client, isFinal }: Pick<RolloutDeps, 'client'> & { readonly isFinal: boolean },
  signal: AbortSignal,
): Promise<PodFault | null> {
  const { namespace, labels: { 'tagyard/site': site } = {} } = deployment.metadata;
  const [newest] = await revisionsOf(client, deployment, signal);
  if (newest === undefined || namespace === undefined) return null;
  const labels = `pod-template-hash=${newest.hash},tagyard/site=${site}`;
  return await podFault(client, { namespace, labels, isFinal }, signal);
}

/** Why pods of a Deployment can't be created; `null`: none was refused. */
export function podRefusal(
  deployment: KubernetesObject,
  { copies, identity }: Pick<RolloutDeps, 'copies' | 'identity'>,
): RolloutFailure | null {
  const { isSeen, failure } = deploymentState(deployment);
  if (!isSeen || failure === null) return null;
  const { namespace = null } = deployment.metadata;
  return refusal(failure, (name) => {
    const found = copies.find({ kind: 'ResourceQuota', namespace, name });
    return found !== undefined && isOurs(identity, found);
  });
}

/** The failure by the text of a ReplicaSet's controller: `pods "…" is forbidden: exceeded quota: …`. */
function refusal(message: string, isOwn: (quota: string) => boolean): RolloutFailure {
  // Source: k8s.io/apiserver, pkg/admission/plugin/resourcequota, CheckRequest.
  const [, name] = /exceeded quota: ([^,]+),/.exec(message) ?? [];
  if (name !== undefined && isOwn(name)) {
    return {
      message: `no room in the client’s quota until the deadline: ${message}`,
      isLasting: false,
      quota: 'own',
    };
  }
  const isQuota = /exceeded quota|insufficient quota/.test(message);
  const what = isQuota ? 'a quota of the namespace is used up' : 'the cluster refuses the pods';
  return { message: `${what}: ${message}`, isLasting: !isQuota, quota: isQuota ? 'other' : null };
}

/**
 * The template that served before this rollout, and of which pods may still run; `null`: there was none. `before`: the
 * number of the revision that was complete before; 0: unknown, because an earlier process has begun the rollout.
 */
export async function earlierTemplate(
  client: KubernetesClient,
  { deployment, before }: { readonly deployment: KubernetesObject; readonly before: number },
  signal: AbortSignal,
): Promise<object | null> {
  const newest = revisionNumber(deployment);
  const revisions = await revisionsOf(client, deployment, signal);
  const others = revisions.filter(({ number }) => number !== newest);
  const complete = others.find(({ number }) => number === before && before > 0);
  return (complete ?? others.find(({ available }) => available > 0))?.template ?? null;
}

/** Counts the failed rollouts of each content: retried at first, then reported as terminal, then given up. */
export class RolloutFailures {
  readonly #counts = new Map<string, number>();
  readonly #proven = new Set<string>();

  prove(hash: string): void {
    this.#proven.add(hash);
    this.#counts.delete(hash);
  }

  /** True if this content was rolled out. */
  isProven(hash: string): boolean {
    return this.#proven.has(hash);
  }

  /** Forgets all other contents. */
  retain(hashes: ReadonlySet<string>): void {
    for (const hash of this.#counts.keys()) if (!hashes.has(hash)) this.#counts.delete(hash);
    for (const hash of this.#proven) if (!hashes.has(hash)) this.#proven.delete(hash);
  }

  /** `cause`: why the return to the previous template has failed, too. */
  errorOf(hash: string, message: string, { quota, isLasting }: RolloutFailure, cause?: unknown): Error {
    if (quota === 'other') return new QuotaReachedError(message, { cause });
    // The template isn't at fault.
    if (quota === 'own') return new RetryableError(message, { cause });
    const times = (this.#counts.get(hash) ?? 0) + 1;
    this.#counts.set(hash, times);
    const options = { isOfSite: isLasting, cause };
    if (times < TERMINAL_AFTER) return new RetryableError(message, options);
    const repeated = `${message}; ${times} times in a row`;
    if (times < GIVE_UP_AFTER || this.#proven.has(hash)) return new TerminalError(repeated, options);
    return new GivenUpError(
      `${repeated}. It is not rolled out again until its manifest changes or you run tagyard apply`,
      options,
    );
  }
}
