import { memoryBytes } from '../../sites/manifest/resources/memory.ts';
import { mostReplicas } from '../../sites/manifest/resources/replicas.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import { isOperator } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';

export type ImageSettings = Pick<Context['settings'], 'superAdmins' | 'image' | 'imageRepositories'>;

/** An entry of the list of repositories: it allows images of the host that have only an id and no name. */
const LOCAL = 'local';

/** `gcr.io/cloud-tagging/gtm` for `gcr.io/cloud-tagging/gtm:stable@sha256:…`; `local` for an image without a name. */
export function repositoryOf(image: string): string {
  const [name, digest] = image.split('@');
  if (name === undefined || digest === undefined) return LOCAL;
  return name.replace(/:[^/:]*$/, '');
}

/** The most memory that a tenant may give one container, because other tenants use the host, too. */
const MOST_MEMORY = '2048m';
/** The most processing containers of a tenant's site, wherever it runs. */
const MOST_OF_TENANT = 4;

/** Throws unless the caller may set these resources. Everyone may repeat those that the container already has. */
export function demandResources(
  changed: Manifest['resources'],
  current: Manifest['resources'],
  caller: Actor,
  settings: Pick<ImageSettings, 'superAdmins'>,
): void {
  if (isOperator({ settings }, caller)) return;
  const errors = (['processing', 'preview'] as const).flatMap((role) => {
    const { memory } = changed[role];
    const most = Math.max(memoryBytes(MOST_MEMORY), memoryBytes(current[role].memory));
    const isLarge = memoryBytes(memory) > most;
    return isLarge ? [{ path: `resources.${role}.memory`, message: `must be at most ${MOST_MEMORY}` }] : [];
  });
  const most = Math.max(MOST_OF_TENANT, mostReplicas(current.processing.replicas));
  if (mostReplicas(changed.processing.replicas) > most) {
    errors.push({ path: 'resources.processing.replicas', message: `must be at most ${MOST_OF_TENANT}` });
  }
  if (errors.length === 0) return;
  throw new ManagementProblem('forbidden', { detail: 'only an operator may exceed these limits', errors });
}

/**
 * Throws unless the caller may set this image. An image runs on the host, so only operators may set one, and only if
 * `demandAllowedImage` allows it. Everyone may repeat the image that the container already has.
 */
export function demandImage(
  image: string | undefined,
  current: string,
  caller: Actor,
  settings: ImageSettings,
): void {
  if (image === undefined || image === current) return;
  if (!isOperator({ settings }, caller)) {
    throw new ManagementProblem('forbidden', { detail: 'only an operator may change the image' });
  }
  demandAllowedImage(image, settings);
}

/** Throws `image_not_allowed` unless the image is the one of new sites, or from one of the settings' repositories. */
export function demandAllowedImage(
  image: string,
  { image: ofNewSites, imageRepositories }: Pick<ImageSettings, 'image' | 'imageRepositories'>,
): void {
  const repository = repositoryOf(image);
  if (image === ofNewSites || imageRepositories.includes(repository)) return;
  throw new ManagementProblem('image_not_allowed', {
    detail: `the repository ${repository} is not among the allowed ones: ${imageRepositories.join(', ')}`,
    errors: [{ path: 'image', message: 'is from a repository that is not allowed' }],
  });
}
