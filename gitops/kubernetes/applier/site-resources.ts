import { TerminalError } from '../../../base/errors.ts';
import { contentHash } from '../../../base/ownership.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import type { Resource, Traits } from '../../appliers/contract.ts';
import type { KubernetesObject } from '../client/kinds.ts';
import { initialReplicas } from './objects/scale.ts';
import { ObjectSpec, resourceKey } from './state/object-spec.ts';

/** Everything of a site but its Deployments. */
export const OBJECTS = { target: 'objects' } as const satisfies Traits;
/** The Deployments of a site. */
export const WORKLOADS = { target: 'workloads' } as const satisfies Traits;

/** Renders the objects of a site; throws `TerminalError` where a cluster can't run it. */
export type RenderSite = (manifest: LoadedManifest) => readonly KubernetesObject[];

/** The objects of one target as resources, pure. */
export function siteResources(
  manifest: LoadedManifest,
  target: typeof OBJECTS.target | typeof WORKLOADS.target,
  render: RenderSite,
): Resource<ObjectSpec>[] {
  const { objects, refusal } = rendered(manifest, render);
  const secrets = objects
    .flatMap((object) => (object.kind === 'Secret' ? Object.values(object.data ?? {}) : []))
    .map((secret) => Buffer.from(String(secret), 'base64').toString());
  const scaled = new Set(objects.flatMap((object) => scaledBy(object)));
  return objects
    .filter(({ kind }) => (kind === 'Deployment') === (target === WORKLOADS.target))
    .map((object) => {
      const isDeployment = object.kind === 'Deployment';
      const isScaled = isDeployment && scaled.has(object.metadata.name);
      const own = isDeployment ? refusal : null;
      const spec = new ObjectSpec(object, {
        manifest,
        secrets,
        initialReplicas: isScaled ? initialReplicas(manifest) : isStopped(object) ? 0 : null,
        refusal: own,
      });
      return {
        target,
        site: manifest.site,
        key: resourceKey(spec.address),
        hash: contentHash(own === null ? object : { object, refusal: own }),
        summary: summaryOf(object, spec),
        adopt: manifest.adopt,
        spec,
      };
    });
}

/**
 * The existing objects of a refused site must not be deleted, so the site is rendered without what is refused: its
 * policy script. The site's Deployments can't be applied.
 */
function rendered(manifest: LoadedManifest, render: RenderSite) {
  try {
    return { objects: render(manifest), refusal: null };
  } catch (error) {
    if (!(error instanceof TerminalError)) throw error;
    const { policy: _, ...rest } = manifest;
    return { objects: render(rest), refusal: error.message };
  }
}

/** Whether a Deployment has no pod until others set its `replicas`. */
function isStopped({ kind, spec }: KubernetesObject): boolean {
  return kind === 'Deployment' && !Object.hasOwn(Object(spec), 'replicas');
}

/** The names of the Deployments that an object scales. */
function scaledBy(object: KubernetesObject): string[] {
  if (object.kind !== 'HorizontalPodAutoscaler') return [];
  const { scaleTargetRef } = object.spec as { scaleTargetRef: { name: string } }; // as the renderer makes it
  return [scaleTargetRef.name];
}

function summaryOf(
  { kind, metadata, spec }: KubernetesObject,
  { initialReplicas: first }: ObjectSpec,
): string {
  const what = `${kind} ${metadata.namespace}/${metadata.name}`;
  if (kind !== 'Deployment') return `apply ${what}`;
  const { template } = spec as { template: { spec: { containers: { image: string }[] } } }; // as the renderer makes it
  const image = template.spec.containers[0]?.image ?? '';
  const pods =
    first === null
      ? ''
      : first === 0
        ? ', on demand'
        : first < 2
          ? ', one pod: not redundant'
          : `, ${first} pods or more`;
  return `roll out ${what} of ${image.replace(/(sha256:[0-9a-f]{12})[0-9a-f]+$/, '$1')}${pods}`;
}
