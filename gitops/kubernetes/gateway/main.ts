import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { systemClock as clock } from '../../../base/clock.ts';
import { assignProxyPorts } from '../../appliers/proxy/ports.ts';
import { openKubernetes } from '../client/client.ts';
import { GatewayAgent } from './agent.ts';
import { ClusterFeed } from './cluster.ts';
import { type GatewayEnv, readGatewayEnv } from './env.ts';
import { serveHealth } from './health.ts';

/** Starts the agent of a gateway's pod. `stop` ends nginx, with time for requests in flight. */
async function start(env: GatewayEnv): Promise<{ stop(): Promise<void> }> {
  const log = pino({ level: env.LOG_LEVEL });
  const directory = env.GATEWAY_DIR;
  await mkdir(directory, { recursive: true, mode: 0o711 });
  // These ports stay the same after a restart, because an nginx that an earlier process has started uses them.
  const inner = { statusPort: 0, resolverPort: 0 };
  const ports = await assignProxyPorts(join(directory, 'ports.json'), ['127.0.0.1'], inner);
  const client = await openKubernetes({ kubeconfig: env.KUBECONFIG, context: env.KUBERNETES_CONTEXT });
  const feed = new ClusterFeed({
    client,
    namespace: env.GATEWAY_NAMESPACE,
    instance: env.TAGYARD_INSTANCE,
    idleMs: 1_000 * env.PREVIEW_IDLE_SECONDS,
    pod: { name: env.POD_NAME, uid: env.POD_UID },
    clock,
    log,
  });
  const ranges = env.GATEWAY_PROXY_PROTOCOL_FROM;
  const agent = new GatewayAgent(
    {
      bin: env.NGINX_BIN,
      directory,
      listen: env.GATEWAY_LISTEN,
      httpPort: env.GATEWAY_HTTP_PORT,
      tlsPort: env.GATEWAY_TLS_PORT,
      policyPort: env.GATEWAY_POLICY_PORT,
      ...ports,
      frontRanges: ranges.length === 0 ? null : ranges,
      limits: { requestsPerSecond: env.NAME_REQUESTS_PER_SECOND, connections: env.NAME_CONNECTIONS },
      ...(env.EDGE_CA_FILE === undefined ? {} : { ca: env.EDGE_CA_FILE }),
      logBytes: env.GATEWAY_LOG_MEGABYTES * 1_000_000,
    },
    {
      clock,
      log,
      endpointsOf: (service) => feed.endpointsOf(service),
      start: (namespace, deployment) => feed.start(namespace, deployment),
    },
  );
  let ending = false;
  const health = await serveHealth(
    { address: env.GATEWAY_HEALTH_ADDRESS, port: env.GATEWAY_HEALTH_PORT },
    { obstacles: () => agent.obstacles(), isEnding: () => ending },
  );
  await agent.open();
  feed.follow(agent);
  return {
    async stop() {
      ending = true;
      // The front learns by the probe that the gateway ends, and sends no new connections.
      await clock.sleep(1_000 * env.GATEWAY_ANNOUNCE_SECONDS);
      await agent.end(1_000 * env.GATEWAY_DRAIN_SECONDS);
      await feed.end();
      await client.close();
      health.close();
      health.closeAllConnections();
    },
  };
}

// Installed before the start: after a signal during the start, the start is completed, and then all is closed.
const stopping = Promise.withResolvers<void>();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stopping.resolve());

try {
  const { stop } = await start(readGatewayEnv(process.env));
  await stopping.promise;
  await stop();
  process.exit(0);
} catch (error) {
  process.stderr.write(`gateway: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
