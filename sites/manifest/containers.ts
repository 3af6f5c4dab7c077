import { contentHash } from '../../base/ownership.ts';
import { originUrl } from './documents.ts';
import type { PolicyScript } from './policy/policy-script.ts';
import type { PolicyToken } from './policy/policy-token.ts';
import { replicasOnHost } from './resources/replicas.ts';
import { TAG_SERVER } from './resources/tag-server.ts';
import type { Manifest } from './schema.ts';
import type { Secret } from './secrets.ts';
import type { SlotHolder } from './slots.ts';

/** A manifest whose secrets have been decrypted on the host that runs it. */
export interface LoadedManifest extends Manifest {
  readonly config: Secret;
  /** Names of members whose secrets aren't bound to this container yet (`encryptFor`); unset: all are. */
  readonly unbound?: readonly string[];
  /** The JSON of `serviceAccount`'s key. */
  readonly serviceAccountKey?: Secret;
  /** The private key of `tls: uploaded`, in PEM. */
  readonly tlsKey?: Secret;
  /** What limits the templates of the tag server; unset: nothing does. */
  readonly policy?: PolicyScript;
}

export const CONTAINER_ROLES = ['processing', 'preview'] as const;
export type ContainerRole = (typeof CONTAINER_ROLES)[number];

/** One desired container. The proxy reaches it at `address:port`, which is a loopback address of this host. */
export interface ContainerSpec {
  readonly site: string;
  readonly role: ContainerRole;
  /** 0-based; the preview role has exactly one. */
  readonly replica: number;
  readonly image: string;
  /** Memory as in `512m`; CPUs as a fraction of one core. */
  readonly memory: string;
  readonly cpus: number;
  /** The container's environment without CONTAINER_CONFIG, which is `config`. */
  readonly env: Readonly<Record<string, string>>;
  readonly config: Secret;
  /** The JSON of a service account's key, which the container reads from a file. */
  readonly serviceAccountKey?: Secret;
  readonly address: string;
  readonly port: number;
  /** It runs only while it is used: a socket on `address` starts it for the first request. */
  readonly onDemand: boolean;
  /** Where the container itself listens, at the same `port`. This address equals `address` unless `onDemand` is set. */
  readonly boundAddress: string;
  /** The hostname of the preview server. In the containers of the processing role it must resolve to this host. */
  readonly previewHost: string;
  /** The hostname of the site's policy script. It must also resolve to this host in the container; unset: it reads none. */
  readonly policyHost?: string;
  readonly hash: string;
}

interface AssignedSlots {
  addressOf(wanted: SlotHolder): string;
  edition(site: string): number;
  /** A copy for plans that are only shown: slots that it assigns are not assigned in the original. */
  copy(): AssignedSlots;
}

/** Where a machine's proxy serves policy scripts. */
interface PolicyPlace {
  /** The name of a site's script. */
  nameOf(site: string): string;
  /** See `policyTokens`. */
  readonly tokenOf: PolicyToken;
}

export interface ContainerSettings {
  /** Assigns loopback addresses (`Slots`). All callers of `containerSpecs` must pass the same one. */
  readonly slots: AssignedSlots;
  /** The port on which the proxy answers TLS for preview hostnames. */
  readonly originPort: number;
  /**
   * The current edition of a site's containers. Another edition replaces the containers without a change of the manifest.
   * All callers of `containerSpecs` must pass the same function. Default: one edition.
   */
  edition?(site: string): string;
  /** Each site's containers are in a network of their own. Default: false. */
  readonly ownNetwork?: boolean;
  /**
   * The name of a site's preview server in the site's network. All callers of `containerSpecs` must pass the same
   * function. Default: its public hostname.
   */
  previewNameOf?(site: string): string;
  /** Where the proxy serves the sites' policy scripts. Default: it serves none. */
  readonly policyScripts?: PolicyPlace;
}

/**
 * The containers of a site. Pure apart from the slots: the first call assigns a container its slot. It keeps that slot
 * until it is neither desired nor running any more. A changed spec has another hash and therefore another slot with the
 * same port: the old and the new container run side by side during a swap (docs/reconciler.md, rule 8).
 */
export function containerSpecs(manifest: LoadedManifest, settings: ContainerSettings): ContainerSpec[] {
  const { site, image, resources, ports, hostnames, config, serviceAccountKey } = manifest;
  const previewHost = settings.previewNameOf?.(site) ?? hostnames.preview;
  const policyHost = policyHostOf(manifest, settings);
  const { policyScripts } = settings;
  const env = environments(manifest, {
    previewUrl: originUrl(previewHost, settings.originPort),
    policyUrl:
      policyHost === null || policyScripts === undefined
        ? null
        : `${originUrl(policyHost, settings.originPort)}/${policyScripts.tokenOf(manifest)}`,
  });
  const spec = (
    role: ContainerRole,
    replica: number,
    { memory, cpus, onDemand = false }: { memory: string; cpus: number; onDemand?: boolean },
  ): ContainerSpec => {
    const port = ports[role];
    const hash = contentHash({
      site,
      role,
      replica,
      image,
      memory,
      cpus,
      env: env[role],
      config: config.fingerprint,
      serviceAccount: serviceAccountKey?.fingerprint,
      port,
      // A container on demand stops while it is unused, so it needs no replacement because of its age.
      ...(onDemand ? { onDemand } : { edition: settings.edition?.(site) }),
      // Part of the spec's hash, so that a swap moves the containers of an older release to their network.
      ...(settings.ownNetwork ? { network: 'own' } : {}),
    });
    const holder = containerKey({ site, role, replica, hash });
    const addressOf = (name: string) => settings.slots.addressOf({ site, port, holder: name });
    const boundAddress = addressOf(holder);
    return {
      site,
      role,
      replica,
      image,
      memory,
      cpus,
      env: env[role],
      config,
      ...(serviceAccountKey === undefined ? {} : { serviceAccountKey }),
      address: onDemand ? addressOf(gateHolder(holder)) : boundAddress,
      port,
      onDemand,
      boundAddress,
      previewHost,
      ...(role === 'processing' && policyHost !== null ? { policyHost } : {}),
      hash,
    };
  };
  const { processing, preview } = resources;
  return [
    ...Array.from({ length: replicasOnHost(processing.replicas) }, (_, replica) =>
      spec('processing', replica, processing),
    ),
    spec('preview', 0, preview),
  ];
}

interface ReadAddresses {
  /** Where the preview server answers over TLS: the tag server accepts no other scheme (docs/facts.md). */
  readonly previewUrl: string;
  /** The URL that the policy script's file name is appended to: `https://<host>…/<token>`; `null`: none is served. */
  readonly policyUrl: string | null;
}

/** The environment of a site's containers, without CONTAINER_CONFIG and what depends on how they run. Pure. */
export function environments(
  { serviceAccount, policy }: Pick<LoadedManifest, 'serviceAccount' | 'policy'>,
  { previewUrl, policyUrl }: ReadAddresses,
): Record<ContainerRole, Record<string, string>> {
  const both = {
    NODE_OPTIONS: `--max-http-header-size=${TAG_SERVER.maxHeaderOctets}`,
    ...(serviceAccount ? { GOOGLE_CLOUD_PROJECT: serviceAccount.projectId } : {}),
  };
  return {
    processing: {
      PREVIEW_SERVER_URL: previewUrl,
      // The hash is in the URL, so a changed script changes the environment and replaces the container: a tag server reads
      // its script only when it starts.
      ...(policy === undefined || policyUrl === null
        ? {}
        : { POLICY_SCRIPT_URL: `${policyUrl}/${policy.hash}.js` }),
      ...both,
    },
    preview: { RUN_AS_PREVIEW_SERVER: 'true', ...both },
  };
}

/** The name of the site's policy script; `null`: it has none. */
export function policyHostOf(
  { site, policy }: Pick<LoadedManifest, 'site' | 'policy'>,
  { policyScripts }: Pick<ContainerSettings, 'policyScripts'>,
): string | null {
  return policy === undefined ? null : (policyScripts?.nameOf(site) ?? null);
}

type Identifying = Pick<ContainerSpec, 'site' | 'role' | 'replica' | 'hash'>;

/** `<site>/<role>/<replica>/<hash8>`: identifies a container on its host, and the holder of its slot. */
export function containerKey({ site, role, replica, hash }: Identifying): string {
  return `${site}/${role}/${replica}/${hash.slice(0, 8)}`;
}

/** The holder of the second slot of a container on demand, where its port gate listens. */
export function gateHolder(key: string): string {
  return `${key}/gate`;
}
