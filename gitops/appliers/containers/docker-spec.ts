import type { ContainerCreateOptions } from 'dockerode';
import type { Launch } from './runtime.ts';

export const MARK_LABEL = 'tagyard.mark';
/** The port that the image listens on, inside. */
export const CONTAINER_PORT = 8080;

/** Distroless's `nonroot`. */
const USER = '65532:65532';
const CA_PATH = '/etc/tagyard/ca.pem';
/** Node's threads and what V8 starts beside them stay far below. */
const MOST_PROCESSES = 128;

/**
 * What the engine is asked for, pure: nothing writable but a small /tmp, no privilege to gain, the port on one
 * loopback address of this host. CONTAINER_CONFIG is in the environment and nowhere else.
 */
export function createOptions({ name, mark, spec }: Launch, caFile?: string): ContainerCreateOptions {
  const memory = bytes(spec.memory);
  const env = {
    ...spec.env,
    PORT: String(CONTAINER_PORT),
    CONTAINER_CONFIG: spec.config.reveal(),
    ...(caFile === undefined ? {} : { NODE_EXTRA_CA_CERTS: CA_PATH }),
  };
  const port = `${CONTAINER_PORT}/tcp`;
  return {
    name,
    Image: spec.image,
    User: USER,
    Env: Object.entries(env).map(([key, value]) => `${key}=${value}`),
    Labels: { [MARK_LABEL]: mark },
    ExposedPorts: { [port]: {} },
    HostConfig: {
      PortBindings: { [port]: [{ HostIp: spec.boundAddress, HostPort: String(spec.port) }] },
      // The preview server is behind this host's proxy, by a name that only the host may know.
      ExtraHosts: spec.role === 'processing' ? [`${spec.previewHost}:host-gateway`] : [],
      ...(caFile === undefined ? {} : { Binds: [`${caFile}:${CA_PATH}:ro`] }),
      ReadonlyRootfs: true,
      Tmpfs: { '/tmp': 'rw,noexec,nosuid,nodev,size=16m' },
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Memory: memory,
      // As much as Memory: no swap on top.
      MemorySwap: memory,
      NanoCpus: Math.round(spec.cpus * 1e9),
      PidsLimit: MOST_PROCESSES,
      LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } },
      RestartPolicy: { Name: 'unless-stopped' },
    },
  };
}

/** `512m` or `1g`, as the manifest's schema lets through, in bytes. */
function bytes(memory: string): number {
  return Number.parseInt(memory, 10) * (memory.endsWith('g') ? 2 ** 30 : 2 ** 20);
}
