import type { ContainerRole } from '../../../../sites/manifest/containers.ts';
import { memoryBytes } from '../../../../sites/manifest/resources/memory.ts';
import type { Manifest } from '../../../../sites/manifest/schema.ts';
import { cpuQuantity, memoryQuantity, milliCores } from './quantities.ts';

/** Memory in bytes, and thousandths of a core. */
export interface Amount {
  readonly memory: number;
  readonly cpu: number;
}

/**
 * What a pod is sure to have, where the manifest names nothing else: an idle tag server needs little, and the node's other
 * pods can use what it doesn't need.
 */
const REQUESTS = { memory: '256m', cpus: 0.1 };

/** Its logs are the only thing that a pod stores on its node, and the kubelet rotates them. */
const STORAGE = { requests: '64Mi', limits: '1Gi' };

interface PodResources {
  readonly requests: Amount;
  readonly limits: Amount;
}

/** What a pod of this role gets at least and at most. */
export function podResources({ resources }: Pick<Manifest, 'resources'>, role: ContainerRole): PodResources {
  const limits = amount(resources[role]);
  const wanted = amount({
    ...REQUESTS,
    ...(role === 'processing' ? named(resources.processing.requests) : {}),
  });
  // The API server refuses requests above the limits.
  const requests = {
    memory: Math.min(wanted.memory, limits.memory),
    cpu: Math.min(wanted.cpu, limits.cpu),
  };
  return { requests, limits };
}

function amount({ memory, cpus }: { memory: string; cpus: number }): Amount {
  return { memory: memoryBytes(memory), cpu: milliCores(cpus) };
}

/** Without undefined members, which would hide a default. */
function named({ memory, cpus }: NonNullable<Manifest['resources']['processing']['requests']> = {}) {
  return { ...(memory === undefined ? {} : { memory }), ...(cpus === undefined ? {} : { cpus }) };
}

/** The result of `podResources`, in the form that a container's spec has. */
export function statedResources(manifest: Pick<Manifest, 'resources'>, role: ContainerRole) {
  const { requests, limits } = podResources(manifest, role);
  const stated = ({ memory, cpu }: Amount, storage: string) => ({
    cpu: cpuQuantity(cpu),
    memory: memoryQuantity(memory),
    'ephemeral-storage': storage,
  });
  return { requests: stated(requests, STORAGE.requests), limits: stated(limits, STORAGE.limits) };
}
