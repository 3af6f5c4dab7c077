import type { ContainerCreateOptions } from 'dockerode';
import type { Launch } from './runtime.ts';

export const MARK_LABEL = 'tagyard.mark';
/** The port on which the image listens in the container. */
export const CONTAINER_PORT = 8080;

/** Distroless's `nonroot`. */
const USER = '65532:65532';
const CA_PATH = '/etc/tagyard/ca.pem';
/** Well above the threads that Node and V8 start. */
const MAX_PROCESSES = 128;

/**
 * Returns the engine's options for a container; a pure function. In the container only a small /tmp is writable. It has
 * no privileges, can't gain any, and publishes its port on one loopback address. CONTAINER_CONFIG is in the environment
 * only.
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
      // The preview hostname may resolve on this host only, where the proxy serves it.
      ExtraHosts: spec.role === 'processing' ? [`${spec.previewHost}:host-gateway`] : [],
      ...(caFile === undefined ? {} : { Binds: [`${caFile}:${CA_PATH}:ro`] }),
      ReadonlyRootfs: true,
      Tmpfs: { '/tmp': 'rw,noexec,nosuid,nodev,size=16m' },
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

/** `512m` or `1g`, as the manifest's schema allows, in bytes. */
function bytes(memory: string): number {
  return Number.parseInt(memory, 10) * (memory.endsWith('g') ? 2 ** 30 : 2 ** 20);
}
