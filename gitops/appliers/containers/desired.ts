import { contentHash } from '../../../base/ownership.ts';
import {
  type ContainerSettings,
  type ContainerSpec,
  containerKey,
  containerSpecs,
  type LoadedManifest,
} from '../../../sites/manifest/containers.ts';
import type { Resource, Traits } from '../contract.ts';

export const CONTAINERS = { target: 'containers', mayOutliveSite: true } as const satisfies Traits;

interface DesiredSettings extends ContainerSettings {
  /** PEM file, on this host, of a CA that containers trust in addition to Node's own. */
  readonly caFile?: string;
  /** Hash of that file's content. */
  readonly caHash?: string;
}

/** Increase it when a release creates other containers from the same spec: running containers are then replaced. */
const RECIPE = 1;

/**
 * The containers of a site as resources, pure. The key contains the spec's hash, so a changed spec is another resource:
 * the new container is created, traffic is switched, and the old container is removed. Settings of the host (the slot's
 * address, the CA) are in the hash of the resource only, so a change replaces the container under the same key.
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
      caHash: settings.caHash,
    }),
    summary: `run ${spec.site} ${spec.role} ${spec.replica} of ${shortImage(spec.image)} on ${spec.address}:${spec.port} (${spec.memory}, ${spec.cpus} CPU${spec.onDemand ? ', on demand' : ''})`,
    adopt: manifest.adopt,
    spec,
  }));
}

type Identifying = Pick<ContainerSpec, 'site' | 'role' | 'replica' | 'hash'>;

/** `tagyard-<instance>-<site>-<role>-<replica>-<hash8>` */
export function containerName(instance: string, { site, role, replica, hash }: Identifying): string {
  return `tagyard-${instance}-${site}-${role}-${replica}-${hash.slice(0, 8)}`;
}

const NAME = /^(.+)-(processing|preview)-(\d+)-([0-9a-f]{8})$/;

/** The key of a container of this instance by its name; `null` for any other name. */
export function keyOfName(instance: string, name: string): string | null {
  const prefix = `tagyard-${instance}-`;
  const match = name.startsWith(prefix) ? NAME.exec(name.slice(prefix.length)) : null;
  return match === null ? null : match.slice(1).join('/');
}

/** A container of this instance by its name, for people: `processing server 0`. */
export function describeContainer(instance: string, name: string): string {
  const [, role, replica] = keyOfName(instance, name)?.split('/') ?? [];
  if (role === undefined) return name;
  return role === 'preview' ? 'the preview server' : `processing server ${replica}`;
}

/** True for the name of another version of the same container: equal site, role and replica. */
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
