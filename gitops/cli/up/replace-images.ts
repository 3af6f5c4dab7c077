import type Docker from 'dockerode';
import { formatManifest, parseManifest } from '../../../sites/manifest/load.ts';
import { openSitesRepo, type SitesRepo } from '../../../sites/repo/sites-repo.ts';
import { callDocker, dockerEngine, unlessGone } from '../../clients/docker.ts';

const AUTHOR = { name: 'tagyard', email: 'tagyard@localhost' };

/** A local image id. Docker can't pull it, unlike a name with a registry. */
const LOCAL_ID = /^sha256:[0-9a-f]{64}$/;

/**
 * Gives this image to sites of an embedded instance whose image is a local id that the engine doesn't have. Such sites
 * could never start again: child processes ran them before, or the stand-in's older image was removed. Returns the
 * names of the changed sites.
 */
export async function replaceMissingImages(
  home: { readonly sitesRepo: string; readonly cacheDir: string },
  image: string,
  given?: Docker,
): Promise<string[]> {
  const docker = given ?? (await dockerEngine());
  const repo = await openSitesRepo({ url: home.sitesRepo, cacheDir: home.cacheDir });
  const revision = await repo.head();
  const files = revision === null ? [] : await repo.read(revision);
  const missing = new Map<string, boolean>();
  const moved: string[] = [];
  for (const { site, text } of files) {
    const current = imageOf(site, text);
    if (current === null || current === image || !LOCAL_ID.test(current)) continue;
    if (!missing.has(current)) missing.set(current, !(await exists(docker, current)));
    if (!missing.get(current)) continue;
    await changeImage(repo, site, { from: current, to: image });
    moved.push(site);
  }
  return moved;
}

/** `null`: the site is removed, or its manifest is invalid, which only a person can fix. */
function imageOf(site: string, text: string): string | null {
  const parsed = parseManifest(text, `${site}.yaml`);
  return parsed.ok && parsed.manifest.state === 'present' ? parsed.manifest.image : null;
}

async function exists(docker: Docker, image: string): Promise<boolean> {
  return (await unlessGone(callDocker(`inspecting ${image}`, docker.getImage(image).inspect()))) !== null;
}

async function changeImage(
  repo: SitesRepo,
  site: string,
  { from, to }: { from: string; to: string },
): Promise<void> {
  await repo.commit({
    site,
    edit(text) {
      const parsed = text === null ? null : parseManifest(text, `${site}.yaml`);
      if (!parsed?.ok || parsed.manifest.image !== from) return text;
      return formatManifest({ ...parsed.manifest, image: to });
    },
    subject: `Change the image of ${site}: this machine doesn’t have the old one`,
    author: AUTHOR,
    trailers: {},
  });
}
