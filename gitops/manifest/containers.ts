import { contentHash } from '../ownership.ts';
import { originUrl } from './documents.ts';
import type { Manifest } from './schema.ts';
import type { Secret } from './secrets.ts';

/** A manifest whose CONTAINER_CONFIG has been decrypted on the host that runs it. */
export interface LoadedManifest extends Manifest {
  readonly config: Secret;
}

export type Role = 'processing' | 'preview';

/** One container as it must run. `address:port` is where the host reaches it; nothing else can. */
export interface ContainerSpec {
  readonly site: string;
  readonly role: Role;
  /** 0-based; the preview role has exactly one. */
  readonly replica: number;
  readonly image: string;
  /** Memory as in `512m`; CPUs as a fraction of one core. */
  readonly memory: string;
  readonly cpus: number;
  /** Without CONTAINER_CONFIG, which is `config`. */
  readonly env: Readonly<Record<string, string>>;
  readonly config: Secret;
  readonly address: string;
  readonly port: number;
  /** The name that the processing role must resolve to the host to reach its preview server. */
  readonly previewHost: string;
  readonly hash: string;
}

export interface ContainerSettings {
  /** First two octets of the loopback range that this instance's containers are bound in, `127.77` say. */
  readonly loopbackSubnet: string;
  /** The port on which the proxy answers TLS for preview hostnames. */
  readonly originPort: number;
}

/**
 * The containers of a site, pure. A changed spec has another hash and so another loopback address with the same
 * port: old and new run side by side while traffic is swapped, without a second port from the pool.
 */
export function containerSpecs(manifest: LoadedManifest, settings: ContainerSettings): ContainerSpec[] {
  const { site, image, resources, ports, hostnames, config } = manifest;
  const spec = (
    role: Role,
    replica: number,
    memory: string,
    cpus: number,
    env: Record<string, string>,
  ): ContainerSpec => {
    const port = ports[role];
    const hash = contentHash({
      site,
      role,
      replica,
      image,
      memory,
      cpus,
      env,
      config: config.fingerprint,
      port,
    });
    return {
      site,
      role,
      replica,
      image,
      memory,
      cpus,
      env,
      config,
      address: loopbackAddress(settings.loopbackSubnet, hash),
      port,
      previewHost: hostnames.preview,
      hash,
    };
  };
  const { processing, preview } = resources;
  return [
    ...Array.from({ length: processing.replicas }, (_, replica) =>
      spec('processing', replica, processing.memory, processing.cpus, {
        PREVIEW_SERVER_URL: originUrl(hostnames.preview, settings.originPort),
      }),
    ),
    spec('preview', 0, preview.memory, preview.cpus, { RUN_AS_PREVIEW_SERVER: 'true' }),
  ];
}

/** All of 127.0.0.0/8 is loopback on Linux; the hash picks the last two octets, the last one in 1..254. */
function loopbackAddress(subnet: string, hash: string): string {
  const third = Number.parseInt(hash.slice(0, 2), 16);
  const fourth = 1 + (Number.parseInt(hash.slice(2, 8), 16) % 254);
  return `${subnet}.${third}.${fourth}`;
}
