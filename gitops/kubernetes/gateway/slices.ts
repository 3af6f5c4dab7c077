import { z } from 'zod';
import { keyOfObject } from '../client/address.ts';
import type { Watched } from '../client/contract.ts';
import type { KubernetesObject } from '../client/kinds.ts';
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

/** Receives the endpoints of services. */
interface Listener {
  /** The services that it uses. */
  readonly services: Iterable<string>;
  list(service: string, endpoints: readonly PodEndpoint[]): void;
}

/** The slices of each service. Kept up to date by each change, because a search would go through thousands. */
export class ServiceSlices {
  readonly #copy: Watched;
  readonly #byService = new Map<string, Map<string, KubernetesObject>>();
  /** The service of each slice, by the slice's key. */
  readonly #serviceOf = new Map<string, string>();
  #areKnown = false;

  constructor(copy: Watched) {
    this.#copy = copy;
  }

  /** What the API server lists of a service (`<namespace>/<name>`); `null`: not known yet. */
  endpointsOf(service: string): PodEndpoint[] | null {
    return this.#areKnown ? endpointsOf(this.#byService.get(service)?.values() ?? []) : null;
  }

  /**
   * Gives the listener the endpoints of its services, and then those of each changed service, until `signal` aborts.
   */
  async follow(listener: Listener, signal: AbortSignal): Promise<void> {
    const changes = this.#copy.changes(signal);
    await this.#copy.ready(signal).catch(() => undefined);
    if (signal.aborted) return;
    /** Returns the services whose slices it changes. */
    const take = (type: 'set' | 'deleted', object: KubernetesObject): string[] => {
      const key = keyOfObject(object);
      const service = type === 'deleted' ? null : serviceOf(object);
      const left = this.#serviceOf.get(key) === service ? [] : this.#drop(key);
      if (service === null) return left;
      const slices = this.#byService.get(service) ?? new Map<string, KubernetesObject>();
      this.#byService.set(service, slices.set(key, object));
      this.#serviceOf.set(key, service);
      return [...left, service];
    };
    for (const object of this.#copy.objects.values()) take('set', object);
    this.#areKnown = true;
    const list = (service: string) => listener.list(service, this.endpointsOf(service) ?? []);
    for (const service of listener.services) list(service);
    for await (const { type, object } of changes) {
      for (const service of take(type === 'deleted' ? type : 'set', object)) list(service);
    }
  }

  async close(): Promise<void> {
    await this.#copy.close();
  }

  /** By the key alone: the deleted object may name another service than before. */
  #drop(key: string): string[] {
    const service = this.#serviceOf.get(key);
    if (service === undefined) return [];
    this.#serviceOf.delete(key);
    const slices = this.#byService.get(service);
    slices?.delete(key);
    if (slices?.size === 0) this.#byService.delete(service);
    return [service];
  }
}

/** The service (`<namespace>/<name>`) of an EndpointSlice; `null`: it has none. */
function serviceOf({ metadata }: KubernetesObject): string | null {
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
