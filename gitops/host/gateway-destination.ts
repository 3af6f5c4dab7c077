import { connect } from 'node:net';
import { RetryableError } from '../../base/errors.ts';
import type { FollowedDestination } from '../appliers/followed-destination.ts';
import type { ClusterEnv } from '../env.ts';
import { serviceAddress } from '../kubernetes/applier/service-address.ts';
import type { KubernetesClient } from '../kubernetes/client/contract.ts';

/** Milliseconds in which an address must accept a connection to count as answering. */
const CONNECT_TIMEOUT_MS = 3_000;

type Destination = FollowedDestination & { close(): Promise<void> };

/** Where the sites' names lead: KUBERNETES_GATEWAY_ADDRESS, else the address of KUBERNETES_GATEWAY_SERVICE. */
export function gatewayDestination(
  {
    KUBERNETES_GATEWAY_ADDRESS: address,
    KUBERNETES_GATEWAY_SERVICE: named,
    KUBERNETES_TLS_PORT: port,
  }: Pick<ClusterEnv, 'KUBERNETES_GATEWAY_ADDRESS' | 'KUBERNETES_GATEWAY_SERVICE' | 'KUBERNETES_TLS_PORT'>,
  client: Pick<KubernetesClient, 'watched'>,
): Destination {
  if (address !== undefined) return { ...UNCHANGING, current: () => address, check: async () => undefined };
  if (named === undefined) {
    const refuse = async () => {
      throw new RetryableError(
        'nothing says where the sites’ names lead: set KUBERNETES_GATEWAY_SERVICE or KUBERNETES_GATEWAY_ADDRESS',
      );
    };
    return { ...UNCHANGING, current: () => null, check: refuse };
  }
  const [namespace = '', name = ''] = named.split('/');
  const services = client.watched({ kind: 'Service', namespace, fields: `metadata.name=${name}` });
  return {
    ...serviceAddress({
      service: { namespace, name },
      services,
      answers: async (destination, signal) => await accepts(destination, port, signal),
    }),
    close: async () => await services.close(),
  };
}

const UNCHANGING = {
  async *changes() {
    // A setting never changes while the process runs.
  },
  close: async () => undefined,
};

async function accepts(host: string, port: number, signal: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host, port, signal, timeout: CONNECT_TIMEOUT_MS });
  socket.once('connect', () => resolve(true));
  for (const event of ['error', 'timeout'] as const) socket.once(event, () => resolve(false));
  return await promise.finally(() => socket.destroy());
}
