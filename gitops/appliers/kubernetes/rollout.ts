import { GivenUpError, QuotaReachedError, RetryableError, TerminalError } from '../../base/errors.ts';
import type { KubernetesClient } from '../../clients/kubernetes/contract.ts';
import type { KubernetesObject } from '../../clients/kubernetes/kinds.ts';
import { type PodFault, podFault } from './pod-fault.ts';
import type { Copies } from './state/copies.ts';
import { deploymentState } from './state/deployment.ts';
import type { ObjectSpec } from './state/object-spec.ts';
import { revisionNumber, revisionsOf } from './state/replica-sets.ts';

/** How long a rollout is waited for, and when its pods are read. Milliseconds. */
export interface RolloutTimes {
  /** A pod that can't be created, for a quota that is used up at the moment, may be created a little later. */
  readonly refusedMs: number;
  /** The new pods are read when they aren't available after this time, and again after it. */
  readonly readMs: number;
  /** The controllers of the cluster must have judged the rollout by then. */
  readonly longestMs: number;
}

/** The renderer's progress deadline is ten minutes: the cluster ends a rollout before this does. */
export const ROLLOUT_TIMES: RolloutTimes = { refusedMs: 5_000, readMs: 10_000, longestMs: 1_500_000 };

/** After this many failures a template that was never available is assumed to be wrong. */
const TERMINAL_AFTER = 3;
const GIVE_UP_AFTER = 12;

interface RolloutDeps {
  readonly client: KubernetesClient;
  readonly copies: Copies;
  readonly times: RolloutTimes;
}

/** Why a rollout has failed. */
interface RolloutFailure extends PodFault {
  /** A ResourceQuota refuses the pods. */
  readonly isQuota: boolean;
}

/** Resolves when the Deployment's newest template is rolled out (`null`), or can't be. */
export async function rolledOut(
  spec: ObjectSpec,
  { client, copies, times }: RolloutDeps,
  signal: AbortSignal,
): Promise<RolloutFailure | null> {
  const { address } = spec;
  const beganAt = performance.now();
  let refusedAt: number | null = null;
  let readAt = beganAt;
  let seenBefore = false;
  let outcome: RolloutFailure | null = null;
  const read = async (deployment: KubernetesObject, isFinal: boolean): Promise<PodFault | null> => {
    const [newest] = revisionsOf(copies, deployment);
    if (newest === undefined || address.namespace === null) return null;
    const labels = `pod-template-hash=${newest.hash},tagyard/site=${spec.manifest.site}`;
    return await podFault(client, { namespace: address.namespace, labels, isFinal }, signal);
  };
  const isEnded = async (): Promise<boolean> => {
    const deployment = copies.find(address);
    if (deployment === undefined) {
      throw new RetryableError(`Kubernetes: Deployment ${address.name} was deleted during its rollout`);
    }
    const state = deploymentState(deployment);
    const isServing = Math.min(state.updated, state.available) >= state.replicas;
    if (state.isRolledOut && state.failure === null && isServing) return true;
    const now = performance.now();
    refusedAt = state.isSeen && state.failure !== null ? (refusedAt ?? now) : null;
    if (refusedAt !== null && now - refusedAt >= times.refusedMs) {
      outcome = refusal(state.failure ?? '');
      return true;
    }
    if (state.isLate) {
      const cause = await read(deployment, true);
      outcome = {
        message: cause?.message ?? 'no progress until its deadline',
        isLasting: false,
        isQuota: false,
      };
      return true;
    }
    if (now - readAt >= times.readMs) {
      readAt = now;
      const cause = await read(deployment, false);
      if (cause?.isLasting && seenBefore) outcome = { ...cause, isQuota: false };
      seenBefore = cause?.isLasting ?? false;
    }
    return outcome !== null;
  };
  const everyMs = Math.min(times.refusedMs, times.readMs);
  const isJudged = await copies.until(address, isEnded, { signal, timeoutMs: times.longestMs, everyMs });
  if (!isJudged) {
    throw new RetryableError(
      `Kubernetes: the rollout of ${address.name} has no end: are the cluster’s controllers running?`,
    );
  }
  return outcome;
}

/** The text of a ReplicaSet's controller: `pods "…" is forbidden: exceeded quota: …`. */
function refusal(message: string): RolloutFailure {
  const isQuota = /exceeded quota|insufficient quota/.test(message);
  const what = isQuota ? 'a quota of the namespace is used up' : 'the cluster refuses the pods';
  return { message: `${what}: ${message}`, isLasting: !isQuota, isQuota };
}

/**
 * The template that served before this rollout, for its pods that still run; `null`: there was none. `before`: the number
 * of the revision that was complete before; 0: unknown, an earlier process has begun the rollout.
 */
export function earlierTemplate(copies: Copies, deployment: KubernetesObject, before: number): object | null {
  const newest = revisionNumber(deployment);
  const others = revisionsOf(copies, deployment).filter(({ number }) => number !== newest);
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

  errorOf(hash: string, message: string, { isQuota, isLasting }: RolloutFailure): Error {
    if (isQuota) return new QuotaReachedError(message);
    const times = (this.#counts.get(hash) ?? 0) + 1;
    this.#counts.set(hash, times);
    const options = { isOfSite: isLasting };
    if (times < TERMINAL_AFTER) return new RetryableError(message, options);
    const repeated = `${message}; ${times} times in a row`;
    if (times < GIVE_UP_AFTER || this.#proven.has(hash)) return new TerminalError(repeated, options);
    return new GivenUpError(
      `${repeated}. It is not rolled out again until its manifest changes or you run tagyard apply`,
      options,
    );
  }
}
