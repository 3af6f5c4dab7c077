import type Docker from 'dockerode';
import type { Identity } from '../../../base/ownership.ts';
import type { ContainerSettings } from '../../../sites/manifest/containers.ts';
import { dockerBridgeGateway } from '../../clients/docker.ts';
import { dockerEvents } from '../../clients/docker-events.ts';
import type { Applier } from '../contract.ts';
import { planResources } from '../plan.ts';
import type { Registration } from '../registration.ts';
import { networkApplier } from './applier.ts';
import { NETWORK } from './desired.ts';
import { dockerNetworks } from './docker-networks.ts';
import { firewall } from './firewall.ts';
import { hostNameservers, hostRoutes } from './host-network.ts';
import { parseRange, type Range } from './ranges.ts';
import { firewallNames } from './rules.ts';
import { networkSettings } from './settings.ts';

interface Services {
  readonly identity: Identity;
  /** `null`: the host runs no containers in Docker. */
  readonly docker: Docker | null;
  readonly containers: Pick<ContainerSettings, 'originPort' | 'ownNetwork'>;
}

/** A network for each site's containers, where the host runs them in Docker. */
export const network: Registration<typeof networkSettings, Services> = {
  ...NETWORK,
  settings: networkSettings,
  create(settings, { identity, docker, containers }) {
    if (!containers.ownNetwork || docker === null) return NO_NETWORKS;
    const names = firewallNames(identity);
    const ranges = settings.CONTAINER_NETWORKS;
    const exceptions = async () => {
      const address = await dockerBridgeGateway(docker);
      return {
        preview: address === null ? null : { address, port: containers.originPort },
        nameservers: await hostNameservers(),
        ranges: settings.CONTAINER_REACHABLE,
      };
    };
    return networkApplier({
      identity,
      names,
      ranges,
      networks: dockerNetworks(docker),
      firewall:
        settings.CONTAINER_FIREWALL === 'enforce' ? firewall({ names, own: ranges, exceptions }) : null,
      reserved: async () => [...(await hostRoutes()), ...(await nameserverRanges())],
      losses: (signal) => dockerEvents(docker, { type: ['network'], event: ['destroy'] }, signal),
    });
  },
};

/** Child processes have no network of their own. */
const NO_NETWORKS: Applier<null, string> = {
  ...NETWORK,
  desired: () => [],
  observe: async () => [],
  plan: planResources,
  apply: async () => undefined,
};

async function nameserverRanges(): Promise<Range[]> {
  return (await hostNameservers()).flatMap((address) => parseRange(address) ?? []);
}
