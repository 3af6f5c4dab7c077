import type { ContainerCreateOptions, MountConfig } from 'dockerode';
import { memoryBytes } from '../../../sites/manifest/resources/memory.ts';
import { TAG_SERVER } from '../../../sites/manifest/resources/tag-server.ts';
import { MARK_LABEL } from '../../clients/docker.ts';
import type { Launch, Slot } from './runtime.ts';

const SLOT_LABEL = 'tagyard.slot';
/**
 * A label with the preview server's address in the container's hosts file; empty: none, or one that the engine chose.
 */
const PREVIEW_LABEL = 'tagyard.preview-address';
/** The port on which the image listens in the container. */
export const CONTAINER_PORT = 8080;

/** For files that only the container may read. */
export const READER = { uid: TAG_SERVER.user, gid: TAG_SERVER.user } as const;
const CA_PATH = '/etc/tagyard/ca.pem';

interface Placement {
  /** PEM file of a CA that the container trusts in addition to Node's own. */
  readonly caFile?: string;
  /** File with the key of a service account, see `KeyFiles`. */
  readonly keyFile?: string;
  /** The container's only network; `previewAddress`: this host on Docker's default bridge. Unset: that bridge. */
  readonly network?: { readonly name: string; readonly previewAddress: string };
}

/** Well above the threads that Node and V8 start. */
const MAX_PROCESSES = 128;

/**
 * Returns the engine's options for a container; a pure function. In the container only a small /tmp is writable. It has
 * no privileges, can't gain any, and publishes its port on one loopback address. CONTAINER_CONFIG is in the environment
 * only, the key of a service account in a file only.
 */
export function createOptions(
  { name, mark, spec }: Launch,
  { caFile, keyFile, network }: Placement = {},
): ContainerCreateOptions {
  const memory = memoryBytes(spec.memory);
  const env = {
    ...spec.env,
    PORT: String(CONTAINER_PORT),
    CONTAINER_CONFIG: spec.config.reveal(),
    ...(caFile === undefined ? {} : { NODE_EXTRA_CA_CERTS: CA_PATH }),
    ...(keyFile === undefined ? {} : { GOOGLE_APPLICATION_CREDENTIALS: TAG_SERVER.keyFile }),
  };
  const port = `${CONTAINER_PORT}/tcp`;
  const previewAddress = spec.role === 'processing' ? network?.previewAddress : undefined;
  return {
    name,
    Image: spec.image,
    User: `${TAG_SERVER.user}:${TAG_SERVER.user}`,
    Env: Object.entries(env).map(([key, value]) => `${key}=${value}`),
    Labels: {
      [MARK_LABEL]: mark,
      [SLOT_LABEL]: formatSlot(spec),
      [PREVIEW_LABEL]: previewAddress ?? '',
    },
    ExposedPorts: { [port]: {} },
    HostConfig: {
      PortBindings: { [port]: [{ HostIp: spec.boundAddress, HostPort: String(spec.port) }] },
      // The tag server reads the hosts file only for a name that DNS doesn't have (docs/facts.md, Start and run).
      ExtraHosts:
        spec.role === 'processing'
          ? [spec.previewHost, ...(spec.policyHost === undefined ? [] : [spec.policyHost])].map(
              (name) => `${name}:${previewAddress ?? 'host-gateway'}`,
            )
          : [],
      // With `ndots` set, Docker's resolver doesn't forward a name of one label: it answers that it has no address.
      ...(network === undefined ? {} : { NetworkMode: network.name, DnsOptions: ['ndots:1'] }),
      Mounts: [...mountOf(caFile, CA_PATH), ...mountOf(keyFile, TAG_SERVER.keyFile)],
      ReadonlyRootfs: true,
      Tmpfs: { '/tmp': `rw,noexec,nosuid,nodev,size=${TAG_SERVER.temporary}` },
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Memory: memory,
      // Equal to Memory: no swap.
      MemorySwap: memory,
      NanoCpus: Math.round(spec.cpus * 1e9),
      PidsLimit: MAX_PROCESSES,
      LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } },
      RestartPolicy: { Name: 'unless-stopped' },
    },
  };
}

/** `Mounts`, not `Binds`: the engine must not create a folder in place of a missing file. */
function mountOf(file: string | undefined, target: string): MountConfig {
  return file === undefined ? [] : [{ Type: 'bind', Source: file, Target: target, ReadOnly: true }];
}

/** `<address> <bound address> <port>`. Docker doesn't list the ports of a stopped container, so this label has them. */
function formatSlot({ address, boundAddress, port }: Slot): string {
  return `${address} ${boundAddress} ${port}`;
}

const SLOT = /^(127(?:\.\d{1,3}){3}) (127(?:\.\d{1,3}){3}) (\d{1,5})$/;

/** The slot in a container's labels; `null` if it has none. */
export function readSlot(labels: Readonly<Record<string, string>>): Slot | null {
  const [, address, boundAddress, port] = SLOT.exec(labels[SLOT_LABEL] ?? '') ?? [];
  return address === undefined || boundAddress === undefined
    ? null
    : { address, boundAddress, port: Number(port) };
}

/**
 * The preview server's address in a container's hosts file, as the container's labels state it; `undefined`: an older
 * release created the container.
 */
export function labelledPreviewAddress(labels: Readonly<Record<string, string>>): string | undefined {
  return labels[PREVIEW_LABEL];
}

/** The same address, as the container's `ExtraHosts` state it; empty if they state none. */
export function hostsPreviewAddress(extraHosts: readonly string[]): string {
  const [, address = ''] = /:(\d+(?:\.\d+){3})$/.exec(extraHosts[0] ?? '') ?? [];
  return address;
}
