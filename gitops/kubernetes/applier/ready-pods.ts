import { z } from 'zod';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { faultReason } from '../client/errors.ts';
import type { KubernetesObject } from '../client/kinds.ts';
import type { Cluster } from './cluster.ts';
import { namespaceOf } from './objects/names.ts';

const podStatus = z.looseObject({
  podIP: z.string().optional(),
  conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).default([]),
});
/** How the cluster's name servers are found in every distribution that we know. No policy of ours applies to them. */
const NAME_SERVERS = { namespace: 'kube-system', labels: 'k8s-app=kube-dns' } as const;
const DNS_PORT = 53;

interface ReadyPod {
  /** `<namespace>/<name>` */
  readonly name: string;
  readonly address: string;
  readonly port: number;
}

/** The processing pods of a site that are ready, on the port on which they listen. */
export async function readyPods(
  { client, identity, namespace }: Pick<Cluster, 'client' | 'identity' | 'namespace'>,
  { site, client: owner, ports }: LoadedManifest,
  signal: AbortSignal,
): Promise<ReadyPod[]> {
  const place = namespaceOf(owner, { identity, namespace });
  const labels = `tagyard/instance=${identity.instance},tagyard/site=${site},tagyard/role=processing`;
  const { items } = await client.list({ kind: 'Pod', namespace: place, labels }, signal);
  return items.flatMap((pod) => ready(pod, ports.processing));
}

/** The cluster's name servers that are ready; none where the account may not list them. */
export async function nameServerPods(
  { client }: Pick<Cluster, 'client'>,
  signal: AbortSignal,
): Promise<ReadyPod[]> {
  try {
    const { items } = await client.list({ kind: 'Pod', ...NAME_SERVERS }, signal);
    return items.flatMap((pod) => ready(pod, DNS_PORT));
  } catch (error) {
    if (faultReason(error) === 'forbidden') return [];
    throw error;
  }
}

function ready({ metadata, status }: KubernetesObject, port: number): ReadyPod[] {
  const { podIP, conditions } = podStatus.parse(status ?? {});
  const isReady = conditions.some((one) => one.type === 'Ready' && one.status === 'True');
  if (podIP === undefined || !isReady || metadata.deletionTimestamp !== undefined) return [];
  return [{ name: `${metadata.namespace}/${metadata.name}`, address: podIP, port }];
}
