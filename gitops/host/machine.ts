import { CONTAINERS } from '../appliers/containers/desired.ts';
import { MACHINE_APPLIERS } from '../appliers/index.ts';
import { reachableAddress } from '../appliers/proxy/backend.ts';
import { dockerBridgeGateway, dockerDataRoot } from '../clients/docker.ts';
import type { MachineEnv } from '../env.ts';
import {
  checkDockerBridge,
  checkDockerDisk,
  checkPreview,
  checkProxy,
  skippedPart,
} from '../host-report/part-checks.ts';
import { hostReporter } from '../host-report/report.ts';
import { runningPreviews } from '../host-report/running-previews.ts';
import type { Host, HostOptions } from './contract.ts';
import { openMachineServices } from './machine-services.ts';
import { createAppliers, reportSettings, sharedPartChecks } from './shared.ts';

/**
 * One machine: containers in Docker or as child processes, behind a proxy. `stack` closes what is opened, also if this
 * function throws. Starts the proxy: sites that it already serves must not wait for the first pass.
 */
export async function buildMachine(
  env: MachineEnv,
  stack: AsyncDisposableStack,
  { log, now }: HostOptions,
): Promise<Host> {
  const { services, certificates, containerLogs } = await openMachineServices(env, stack, { log, now });
  const appliers = await createAppliers(MACHINE_APPLIERS, { env, services, stack });
  const { containers: containerSettings } = services;
  const containers = appliers.find(({ target }) => target === CONTAINERS.target);
  if (containers === undefined) throw new Error('this host runs no containers');
  const previewPath = {
    containerSettings,
    gateway: async () => (containerSettings.ownNetwork ? await dockerBridgeGateway() : null),
  };
  const checkShared = sharedPartChecks(env, services.cloudflare.client);
  return {
    appliers,
    certificates,
    profiles: services.edgeStore,
    containerLogs,
    reportSite: hostReporter({
      ...reportSettings(env, services.cloudflare.client),
      hostAddresses: [env.HOST_ADDRESS],
      otherAddresses: env.ACME_ADDRESSES,
      proxy: { address: reachableAddress(env.PROXY_LISTEN), port: env.PROXY_TLS_PORT },
      previews: runningPreviews(containers),
      previewPath,
    }),
    checkParts: async (sites) => {
      const { address, httpPort: port } = services.proxy.endpoint();
      const [site] = sites;
      return await Promise.all([
        ...checkShared(sites),
        ...(env.CONTAINERS_DRIVER === 'docker' ? [checkDockerDisk(() => dockerDataRoot())] : []),
        ...(containerSettings.ownNetwork ? [checkDockerBridge(() => dockerBridgeGateway())] : []),
        checkProxy({ address, port }),
        site === undefined ? skippedPart('preview') : checkPreview(site, previewPath),
      ]);
    },
  };
}
