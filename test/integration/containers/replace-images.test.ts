import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { expect, test } from 'vitest';
import { replaceMissingImages } from '../../../gitops/cli/up/replace-images.ts';
import { formatManifest, parseManifest } from '../../../sites/manifest/load.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo } from '../../../sites/repo/sites-repo.ts';
import { describeWith } from '../../support/components.ts';
import { tagServerImage } from '../../support/containers/tag-server-image.ts';
import { manifestInput } from '../../support/manifest.ts';

describeWith('docker', 'a start with Docker after one with child processes', () => {
  test('gives this engine’s image to sites whose image is a local id that the engine doesn’t have', async () => {
    const docker = new Docker();
    await using built = await tagServerImage(docker, 'test-replace-images');
    const dir = await mkdtemp(join(tmpdir(), 'tagyard-replace-images-'));
    const sitesRepo = join(dir, 'sites.git');
    await initSitesRepo(sitesRepo);
    const home = { sitesRepo, cacheDir: dir };
    expect(await replaceMissingImages(home, built.image, docker)).toEqual([]);

    const missing = `sha256:${'a'.repeat(64)}`;
    const remote = `registry.example.net/tags@${missing}`;
    const other = `sha256:${'b'.repeat(64)}`;
    const files = {
      stranded: formatManifest(manifestInput('stranded', 0, { image: missing })),
      present: formatManifest(manifestInput('present', 1, { image: built.image })),
      remote: formatManifest(manifestInput('remote', 2, { image: remote })),
      removed: formatManifest(manifestInput('removed', 3, { image: missing, state: 'absent' })),
      broken: 'version: 1\nimage: [',
    };
    const repo = await openSitesRepo({ url: sitesRepo, cacheDir: dir });
    for (const [site, text] of Object.entries(files)) {
      const author = { name: 'Op', email: 'op@example.test' };
      await repo.commit({ site, edit: () => text, subject: 'By hand', author, trailers: {} });
    }
    expect(await replaceMissingImages(home, built.image, docker)).toEqual(['stranded']);
    const head = (await repo.head()) ?? '';
    const after = new Map((await repo.read(head)).map(({ site, text }) => [site, text]));
    const moved = parseManifest(after.get('stranded') ?? '', 'stranded.yaml');
    expect(moved).toMatchObject({ ok: true, manifest: { image: built.image } });
    for (const site of ['present', 'remote', 'removed', 'broken'] as const) {
      expect(after.get(site)).toBe(files[site]);
    }
    // A later start with another image changes no site, because the engine has the sites' image now.
    expect(await replaceMissingImages(home, other, docker)).toEqual([]);
    await rm(dir, { recursive: true });
  });
});
