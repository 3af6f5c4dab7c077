import { z } from 'zod';
import type { KubernetesObject } from '../clients/kubernetes/kinds.ts';
import type { PodEndpoint } from './peers.ts';

/** The label with the name of the Service that an EndpointSlice belongs to. */
const SERVICE = 'kubernetes.io/service-name';

const slice = z.object({
  addressType: z.string(),
  endpoints: z
    .array(
      z.object({
        addresses: z.array(z.string()),
        conditions: z
          .object({
            /** Unset counts as true, as the API's documentation says. */
            ready: z.boolean().nullish(),
            terminating: z.boolean().nullish(),
          })
          .optional(),
      }),
    )
    .nullish(),
  ports: z.array(z.object({ port: z.int().nullish() })).nullish(),
});

/** The service (`<namespace>/<name>`) of an EndpointSlice; `null`: it has none. */
export function serviceOf({ metadata }: KubernetesObject): string | null {
  const name = metadata.labels?.[SERVICE];
  return name === undefined ? null : `${metadata.namespace ?? ''}/${name}`;
}

/** The endpoints in the slices of one service. An address that several slices have is ready if one of them says so. */
export function endpointsOf(slices: Iterable<KubernetesObject>): PodEndpoint[] {
  const found = new Map<string, PodEndpoint>();
  for (const object of slices) {
    const read = slice.safeParse(object);
    if (!read.success || read.data.addressType !== 'IPv4') continue;
    const ports = (read.data.ports ?? []).flatMap(({ port }) => port ?? []);
    for (const { addresses, conditions } of read.data.endpoints ?? []) {
      const state = conditions?.terminating ? 'ending' : (conditions?.ready ?? true) ? 'ready' : null;
      const [address] = addresses;
      if (state === null || address === undefined) continue;
      for (const port of ports) {
        const key = `${address}:${port}`;
        if (found.get(key)?.state !== 'ready') found.set(key, { address, port, state });
      }
    }
  }
  return [...found.values()];
}
