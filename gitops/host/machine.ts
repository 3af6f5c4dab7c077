import { CONTAINERS } from '../appliers/containers/desired.ts';
import { MACHINE_APPLIERS } from '../appliers/index.ts';
import { reachableAddress } from '../appliers/proxy/backend.ts';
import { dockerBridgeGateway } from '../clients/docker.ts';
import type { MachineEnv } from '../env.ts';
import { checkPreview, checkProxy, unusedPart } from '../host-report/part-checks.ts';
import { hostReporter } from '../host-report/report.ts';
import { runningPreviews } from '../host-report/running-previews.ts';
import type { Host, HostOptions } from './contract.ts';
import { openMachineServices } from './machine-services.ts';
import { checkHostParts, tryHostSettings } from './preflight.ts';
import { createAppliers, reportSettings } from './shared.ts';

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
      const proxy = services.proxy.endpoint();
      const [site] = sites;
      const checks = await Promise.all([
        checkHostParts(env, { client: services.cloudflare.client, sites }),
        checkProxy({ address: proxy.address, port: proxy.httpPort }),
        site === undefined ? unusedPart('preview') : checkPreview(site, previewPath),
      ]);
      return checks.flat();
    },
    trySettings: async (sites) =>
      await tryHostSettings(env, {
        ...{ client: services.cloudflare.client, sites },
        proxy: services.proxy.endpoint(),
      }),
  };
}
