import { z } from 'zod';
import type { KubernetesObject } from '../../client/kinds.ts';

const ended = z.looseObject({ startedAt: z.string().nullish(), exitCode: z.number().optional() });
const containerStatus = z.looseObject({
  ready: z.boolean().default(false),
  state: z
    .looseObject({
      running: z.looseObject({ startedAt: z.string().nullish() }).optional(),
      terminated: ended.optional(),
    })
    .prefault({}),
  lastState: z.looseObject({ terminated: ended.optional() }).prefault({}),
});
const podStatus = z.looseObject({
  phase: z.string().optional(),
  conditions: z
    .array(z.looseObject({ type: z.string(), status: z.string(), lastTransitionTime: z.string().nullish() }))
    .default([]),
  containerStatuses: z.array(containerStatus).default([]),
});

/** A pod that served once, and doesn't now. */
export interface LostPod {
  readonly name: string;
  /** Since when, as its status says it. */
  readonly since: string;
  /** For people. */
  readonly why: string;
}

/** The pod if it served once and doesn't now; `null`: it serves, has never served, or was ended for good. */
export function lostPod({ metadata, status }: KubernetesObject): LostPod | null {
  const { phase, conditions, containerStatuses } = podStatus.parse(status ?? {});
  const ready = conditions.find(({ type }) => type === 'Ready');
  const [container] = containerStatuses;
  const isGoing = metadata.deletionTimestamp !== undefined || phase === 'Failed' || phase === 'Succeeded';
  if (isGoing || ready === undefined || ready.status === 'True' || container === undefined) return null;
  const since = ready.lastTransitionTime ?? '';
  const { running, terminated } = container.state;
  const end = terminated ?? container.lastState.terminated;
  // A pod isn't ready from the beginning. If that changed last after a start, it was ready in between.
  const ranBefore = (started: string | null | undefined) =>
    started != null && new Date(started) < new Date(since);
  if (!ranBefore(running?.startedAt) && !ranBefore(end?.startedAt)) return null;
  const lost = { name: metadata.name, since };
  // Not what the container's own probes have found.
  if (container.ready) return { ...lost, why: 'its node doesn’t report any more' };
  return running !== undefined && ranBefore(running.startedAt)
    ? { ...lost, why: 'it fails its health check, GET /healthz' }
    : { ...lost, why: `its process ended with ${end?.exitCode ?? 'an unknown exit code'}` };
}
