import type Docker from 'dockerode';
import { RetryableError } from '../../../base/errors.ts';
import { callDocker, DockerRefusal, limited, MARK_LABEL, unlessGone } from '../../clients/docker.ts';
import { formatRange, parseRange, type Range } from './ranges.ts';

const BRIDGE_NAME = 'com.docker.network.bridge.name';

/** A network of the engine, of any owner. */
export interface DockerNetwork {
  readonly id: string;
  readonly name: string;
  readonly mark: string | null;
  /** Name of the bridge interface; `null` unless the network is an ordinary IPv4 bridge. */
  readonly bridge: string | null;
  readonly subnets: readonly Range[];
}

interface NewNetwork {
  readonly name: string;
  readonly mark: string;
  readonly bridge: string;
  readonly subnet: Range;
}

export interface DockerNetworks {
  list(signal: AbortSignal): Promise<readonly DockerNetwork[]>;
  /** Creates a network. False if the engine already uses a part of the subnet. */
  create(network: NewNetwork, signal: AbortSignal): Promise<boolean>;
  /**
   * With `force`, disconnects the network's containers first. Without it, throws `RetryableError` if there are any. A
   * missing network is no error.
   */
  remove(id: string, options: { readonly force: boolean }, signal: AbortSignal): Promise<void>;
}

/** The networks of a Docker engine on this host; `create` makes bridges. */
export function dockerNetworks(docker: Docker): DockerNetworks {
  return {
    async list(signal) {
      const all = await callDocker('listing networks', docker.listNetworks({ abortSignal: limited(signal) }));
      return all.map(readNetwork);
    },

    async create({ name, mark, bridge, subnet }, signal) {
      const options = {
        Name: name,
        CheckDuplicate: true,
        Driver: 'bridge',
        EnableIPv6: false,
        IPAM: { Driver: 'default', Config: [{ Subnet: formatRange(subnet) }] },
        Options: { [BRIDGE_NAME]: bridge },
        Labels: { [MARK_LABEL]: mark },
        abortSignal: limited(signal),
      };
      try {
        await callDocker(`creating the network ${name}`, docker.createNetwork(options));
        return true;
      } catch (error) {
        if (error instanceof DockerRefusal && /overlap/i.test(error.message)) return false;
        throw error;
      }
    },

    async remove(id, { force }, signal) {
      const network = docker.getNetwork(id);
      if (force) {
        const connected = { all: true, filters: { network: [id] }, abortSignal: limited(signal) };
        const found = await callDocker(
          'listing the containers of a network',
          docker.listContainers(connected),
        );
        for (const { Id } of found) {
          const cut = network.disconnect({ Container: Id, Force: true, abortSignal: limited(signal) });
          await unlessGone(callDocker('disconnecting a container', cut));
        }
      }
      try {
        await unlessGone(callDocker('removing a network', network.remove({ abortSignal: limited(signal) })));
      } catch (cause) {
        // Docker answers 403 while the network has containers. Other changes remove the containers.
        if (!(cause instanceof DockerRefusal) || cause.status !== 403) throw cause;
        throw new RetryableError(cause.message, { cause });
      }
    },
  };
}

function readNetwork(info: Docker.NetworkInspectInfo): DockerNetwork {
  const { Id, Name, Driver, EnableIPv6, Internal, Labels, Options, IPAM } = info;
  const isPlain = Driver === 'bridge' && EnableIPv6 !== true && Internal !== true;
  const subnets = (IPAM?.Config ?? []).flatMap(({ Subnet }) => parseRange(Subnet ?? '') ?? []);
  return {
    id: Id,
    name: Name,
    mark: Labels?.[MARK_LABEL] ?? null,
    bridge: isPlain ? (Options?.[BRIDGE_NAME] ?? null) : null,
    subnets,
  };
}
