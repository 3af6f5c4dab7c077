import { z } from 'zod';
import type { KubernetesClient } from '../../client/contract.ts';
import type { KubernetesObject } from '../../client/kinds.ts';

/** States of a container that don't end by themselves, and the message for each. */
const STUCK: Readonly<Record<string, string>> = {
  ErrImagePull: 'the image can’t be pulled',
  ImagePullBackOff: 'the image can’t be pulled',
  ErrImageNeverPull: 'the image isn’t on the node, and has no name that it could be pulled by',
  InvalidImageName: 'the image’s name is invalid',
  CreateContainerConfigError: 'the container’s configuration is incomplete',
  CreateContainerError: 'the container can’t be created',
  RunContainerError: 'the container can’t be started',
  CrashLoopBackOff: 'the tag server ends again and again',
};
/** A container's or event's message is cut after this many characters. */
const MAX_SHOWN = 500;

const ended = z.looseObject({
  exitCode: z.number().optional(),
  reason: z.string().optional(),
  message: z.string().optional(),
});
const containerStatus = z.looseObject({
  restartCount: z.number().default(0),
  state: z
    .looseObject({
      waiting: z.looseObject({ reason: z.string().optional(), message: z.string().optional() }).optional(),
      terminated: ended.optional(),
    })
    .prefault({}),
  lastState: z.looseObject({ terminated: ended.optional() }).prefault({}),
});
const podStatus = z.looseObject({
  conditions: z
    .array(
      z.looseObject({
        type: z.string(),
        status: z.string(),
        reason: z.string().optional(),
        message: z.string().optional(),
      }),
    )
    .default([]),
  containerStatuses: z.array(containerStatus).default([]),
});
const event = z.looseObject({
  type: z.string().optional(),
  note: z.string().optional(),
  regarding: z.looseObject({ name: z.string().optional() }).optional(),
});

/** Why the new pods of a rollout don't become available. */
export interface PodFault {
  readonly message: string;
  /** It stays until the manifest, the image or the cluster changes. */
  readonly isLasting: boolean;
}

/**
 * Reads the new pods of a Deployment, and says why they aren't available; `null`: nothing is wrong with them so far.
 * `isFinal`: the rollout has failed, so the cluster's events are read, too.
 */
export async function podFault(
  client: KubernetesClient,
  { namespace, labels, isFinal }: { namespace: string; labels: string; isFinal: boolean },
  signal: AbortSignal,
): Promise<PodFault | null> {
  const { items } = await client.list({ kind: 'Pod', namespace, labels }, signal);
  const pods = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  for (const pod of pods) {
    const cause = containerCause(pod);
    if (cause !== null) return cause;
  }
  for (const pod of pods) {
    const { conditions } = statusOf(pod);
    const place = conditions.find(({ type, status }) => type === 'PodScheduled' && status === 'False');
    if (place !== undefined) {
      return { message: `no node takes a pod: ${place.message ?? place.reason}`, isLasting: false };
    }
  }
  if (!isFinal) return null;
  for (const { metadata } of pods) {
    const warning = await lastWarning(client, { namespace, pod: metadata.name }, signal);
    if (warning !== null) return { message: warning, isLasting: false };
  }
  return null;
}

function containerCause(pod: KubernetesObject): PodFault | null {
  for (const { state, lastState, restartCount } of statusOf(pod).containerStatuses) {
    const { waiting } = state;
    const said = STUCK[waiting?.reason ?? ''];
    const end = state.terminated ?? lastState.terminated;
    const isCrash = waiting?.reason === 'CrashLoopBackOff' || (state.terminated && restartCount > 0);
    if (isCrash && end !== undefined) {
      const why = [`exit code ${end.exitCode}`, end.message?.trim() ?? end.reason ?? ''].filter(Boolean);
      return { message: shown(`${STUCK.CrashLoopBackOff}: ${why.join(': ')}`), isLasting: true };
    }
    if (said !== undefined) {
      return { message: shown(`${said}: ${waiting?.message ?? waiting?.reason}`), isLasting: true };
    }
  }
  return null;
}

async function lastWarning(
  client: KubernetesClient,
  { namespace, pod }: { namespace: string; pod: string },
  signal: AbortSignal,
): Promise<string | null> {
  const fields = `regarding.kind=Pod,regarding.name=${pod}`;
  const { items } = await client.list({ kind: 'Event', namespace, fields }, signal);
  const warnings = items.flatMap((item) => {
    const { type, note } = event.parse(item);
    return type === 'Warning' && note !== undefined ? [note] : [];
  });
  const last = warnings.at(-1);
  return last === undefined ? null : shown(last);
}

function statusOf(pod: KubernetesObject): z.infer<typeof podStatus> {
  return podStatus.parse(pod.status ?? {});
}

function shown(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
