import { contentHash } from '../base/ownership.ts';
import { originUrl } from './documents.ts';
import type { Manifest } from './schema.ts';
import type { Secret } from './secrets.ts';

/** A manifest whose CONTAINER_CONFIG has been decrypted on the host that runs it. */
export interface LoadedManifest extends Manifest {
  readonly config: Secret;
}

export type Role = 'processing' | 'preview';

/** One container as it must run. `address:port` is where the proxy reaches it; nothing outside this host can. */
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
  /** Runs only while it is used: what listens on `address` starts it for the first request. */
  readonly onDemand: boolean;
  /** Where the container itself is bound, on `port` too: `address`, unless something else listens there. */
  readonly boundAddress: string;
  /** The name that the processing role must resolve to the host to reach its preview server. */
  readonly previewHost: string;
  readonly hash: string;
}

export interface ContainerSettings {
  /** First two octets of the loopback range that this instance's containers are bound in, `127.77` say. */
  readonly loopbackSubnet: string;
  /** The port on which the proxy answers TLS for preview hostnames. */
  readonly originPort: number;
  /**
   * Which edition of a site's containers is due; another one makes other containers of the same manifest. Everything
   * that derives from `containerSpecs` must be given the same one. Default: there is one edition.
   */
  edition?(site: string): string;
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
    { memory, cpus, onDemand = false }: { memory: string; cpus: number; onDemand?: boolean },
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
      // One that ends whenever nobody uses it is never old.
      ...(onDemand ? { onDemand } : { edition: settings.edition?.(site) }),
    });
    const address = loopbackAddress(settings.loopbackSubnet, hash);
    return {
      site,
      role,
      replica,
      image,
      memory,
      cpus,
      env,
      config,
      address,
      port,
      onDemand,
      boundAddress: onDemand ? loopbackAddress(settings.loopbackSubnet, hash.slice(8)) : address,
      previewHost: hostnames.preview,
      hash,
    };
  };
  const { processing, preview } = resources;
  return [
    ...Array.from({ length: processing.replicas }, (_, replica) =>
      spec('processing', replica, processing, {
        PREVIEW_SERVER_URL: originUrl(hostnames.preview, settings.originPort),
      }),
    ),
    spec('preview', 0, preview, { RUN_AS_PREVIEW_SERVER: 'true' }),
  ];
}

/** All of 127.0.0.0/8 is loopback on Linux; the hash picks the last two octets, the last one in 1..254. */
function loopbackAddress(subnet: string, hash: string): string {
  const third = Number.parseInt(hash.slice(0, 2), 16);
  const fourth = 1 + (Number.parseInt(hash.slice(2, 8), 16) % 254);
  return `${subnet}.${third}.${fourth}`;
}
