import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';

type ImageSettings = Pick<Context['settings'], 'superAdmins' | 'image' | 'imageRepositories'>;

/** In the list of repositories, it allows images of the host that have only an id, no name. */
const LOCAL = 'local';

/** `gcr.io/cloud-tagging/gtm` for `gcr.io/cloud-tagging/gtm:stable@sha256:…`; `local` for an image without a name. */
export function repositoryOf(image: string): string {
  const [name, digest] = image.split('@');
  if (name === undefined || digest === undefined) return LOCAL;
  return name.replace(/:[^/:]*$/, '');
}

/**
 * Throws unless the caller may set this image. An image runs on the host, so only operators may set one, and only from
 * the repositories of the settings. Everyone may repeat the image that the container already has.
 */
export function demandImage(
  image: string | undefined,
  current: string,
  caller: Actor,
  { superAdmins, image: ofNewSites, imageRepositories }: ImageSettings,
): void {
  if (image === undefined || image === current) return;
  if (!superAdmins.includes(caller.subject)) {
    throw new ManagementProblem('forbidden', { detail: 'only an operator may change the image' });
  }
  const repository = repositoryOf(image);
  if (image === ofNewSites || imageRepositories.includes(repository)) return;
  throw new ManagementProblem('image_not_allowed', {
    detail: `the repository ${repository} is not among the allowed ones: ${imageRepositories.join(', ')}`,
    errors: [{ path: 'image', message: 'is from a repository that is not allowed' }],
  });
}
