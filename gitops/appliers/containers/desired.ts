import { contentHash } from '../../base/ownership.ts';
import {
  type ContainerSettings,
  type ContainerSpec,
  containerSpecs,
  type LoadedManifest,
} from '../../manifest/containers.ts';
import type { Resource, Traits } from '../contract.ts';

export const CONTAINERS = { target: 'containers', mayOutliveSite: true } as const satisfies Traits;

export interface DesiredSettings extends ContainerSettings {
  /** PEM file of the CA that containers trust beside Node's own, on this host. */
  readonly caFile?: string;
}

/** Raised when a release gives containers something else for the same spec, so that running ones are replaced. */
const RECIPE = 1;

/**
 * The containers of a site as resources, pure. The spec's hash is in the key, so a changed spec is another thing: the
 * new one is made, traffic goes over, the old one is removed. What the host alone decides (the slot's address, the
 * CA) is in the resource's hash only, and replaces a container where it stands.
 */
export function desiredContainers(
  manifest: LoadedManifest,
  settings: DesiredSettings,
): Resource<ContainerSpec>[] {
  return containerSpecs(manifest, settings).map((spec) => ({
    target: CONTAINERS.target,
    site: spec.site,
    key: containerKey(spec),
    hash: contentHash({
      recipe: RECIPE,
      spec: spec.hash,
      address: spec.boundAddress,
      caFile: settings.caFile,
    }),
    summary: `run ${spec.site} ${spec.role} ${spec.replica} of ${shortImage(spec.image)} on ${spec.address}:${spec.port} (${spec.memory}, ${spec.cpus} CPU${spec.onDemand ? ', on demand' : ''})`,
    adopt: manifest.adopt,
    spec,
  }));
}

type Identifying = Pick<ContainerSpec, 'site' | 'role' | 'replica' | 'hash'>;

/** `<site>/<role>/<replica>/<hash8>` */
export function containerKey({ site, role, replica, hash }: Identifying): string {
  return `${site}/${role}/${replica}/${hash.slice(0, 8)}`;
}

/** `tagyard-<instance>-<site>-<role>-<replica>-<hash8>` */
export function containerName(instance: string, { site, role, replica, hash }: Identifying): string {
  return `tagyard-${instance}-${site}-${role}-${replica}-${hash.slice(0, 8)}`;
}

const NAME = /^(.+)-(processing|preview)-(\d+)-([0-9a-f]{8})$/;

/** The key that belongs to a name of this instance's; `null`: it is none. */
export function keyOfName(instance: string, name: string): string | null {
  const prefix = `tagyard-${instance}-`;
  const match = name.startsWith(prefix) ? NAME.exec(name.slice(prefix.length)) : null;
  return match === null ? null : match.slice(1).join('/');
}

/** True for the name of another version of the very container: same site, role and replica. */
export function isOfSamePlace(instance: string, name: string, spec: Identifying): boolean {
  const key = keyOfName(instance, name);
  return key !== null && key !== containerKey(spec) && placeOf(key) === placeOf(containerKey(spec));
}

function placeOf(key: string): string {
  return key.slice(0, key.lastIndexOf('/'));
}

function shortImage(image: string): string {
  return image.replace(/(sha256:[0-9a-f]{12})[0-9a-f]+$/, '$1');
}
