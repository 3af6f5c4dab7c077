import { isIP } from 'node:net';
import { z } from 'zod';
import { RetryableError, TerminalError } from '../../../base/errors.ts';
import { isPublicAddress } from '../../../base/http/public-address.ts';
import type { FollowedDestination } from '../../appliers/followed-destination.ts';
import type { Watched } from '../client/contract.ts';
import type { KubernetesObject, ObjectAddress } from '../client/kinds.ts';

const balanced = z.object({
  status: z.object({
    loadBalancer: z.object({
      ingress: z.array(z.object({ ip: z.string().optional(), hostname: z.string().optional() })).default([]),
    }),
  }),
});

interface ServiceAddressOptions {
  /** The Service in front of the gateways. */
  readonly service: Pick<ObjectAddress, 'namespace' | 'name'>;
  /** A copy that has this Service. */
  readonly services: Pick<Watched, 'ready' | 'objects' | 'changes'>;
  /** Whether something listens there. Names keep their earlier destination until it does. */
  readonly answers: (destination: string, signal: AbortSignal) => Promise<boolean>;
}

/** Names point to the address in the status of a Service of the type LoadBalancer. */
export function serviceAddress({ service, services, answers }: ServiceAddressOptions): FollowedDestination {
  const key = `${service.namespace}/${service.name}`;
  let current: string | null = null;
  return {
    current: () => current,
    async check(signal) {
      await services.ready(signal);
      const stated = destinationsOf(services.objects.get(key), key);
      // A Service with several addresses lists them in any order.
      if (current !== null && stated.includes(current)) return;
      const [first] = stated;
      if (first === undefined) throw new Error('a Service has no destination');
      if (await answers(first, signal)) current = first;
      else if (current === null) {
        throw new RetryableError(`nothing answers at ${first}, the address of the Service ${key}, yet`);
      }
    },
    async *changes(signal) {
      for await (const _ of services.changes(signal)) yield;
    },
  };
}

/**
 * The destinations that a Service's status states, sorted, at least one. If names can point to none of them, throws an
 * error that says what to do.
 */
export function destinationsOf(object: KubernetesObject | undefined, key: string): readonly string[] {
  if (object === undefined) {
    throw new RetryableError(`there is no Service ${key}: create it, or correct KUBERNETES_GATEWAY_SERVICE`);
  }
  const status = balanced.safeParse(object).data?.status.loadBalancer.ingress ?? [];
  const stated = status.flatMap(({ hostname, ip }) => hostname ?? ip ?? []).sort();
  if (stated.length === 0) {
    throw new RetryableError(`the Service ${key} has no address yet: no load balancer was given to it`);
  }
  const usable = stated.filter((one) => isIP(one) === 0 || isPublicAddress(one));
  if (usable.length > 0) return usable;
  throw new TerminalError(
    `the Service ${key} has only the private address ${stated.join(', ')}, to which no public name can point: give it a public one, or set KUBERNETES_GATEWAY_ADDRESS to the address that leads to it`,
  );
}
