import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import Docker from 'dockerode';
import { pack } from 'tar-stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ensureImage } from '../../../gitops/appliers/containers/docker-image.ts';
import { ImagePruning } from '../../../gitops/appliers/containers/image-pruning.ts';
import { describeWith } from '../../support/components.ts';
import { startImageRegistry } from '../../support/containers/image-registry.ts';

const DAY_MS = 86_400_000;
const NAMES = ['oldest', 'older', 'newer', 'newest'];

describeWith('docker', 'images that no site asks for any more', () => {
  const docker = new Docker();
  const { signal } = new AbortController();
  let stack: AsyncDisposableStack;
  let images: Record<string, string>;
  let file: string;
  let now: number;
  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    const dir = await mkdtemp(join(tmpdir(), 'tagyard-images-'));
    stack.defer(() => rm(dir, { recursive: true }));
    file = join(dir, 'images.json');
    now = 0;
    images = {};
    for (const name of NAMES) images[name] = await pulled(name);
  });
  afterEach(() => stack.disposeAsync());

  /** Makes a small image with other content for each name, and pulls it from a registry. */
  async function pulled(name: string): Promise<string> {
    const local = `tagyard-test/pruning-${process.pid}:${name}`;
    const tar = pack();
    tar.entry({ name: 'file' }, name);
    tar.finalize();
    const [repo = '', tag = ''] = local.split(':');
    const options = { repo, tag, changes: ['CMD ["/file"]'] };
    await text(await docker.importImage(Readable.from(tar), options));
    const registry = stack.use(await startImageRegistry(docker, local));
    await docker.getImage(local).remove();
    await ensureImage(docker, registry.image, signal);
    stack.defer(async () => {
      await docker
        .getImage(registry.image)
        .remove({ force: true })
        .catch(() => undefined);
    });
    return registry.image;
  }

  const build = () =>
    new ImagePruning({ docker, file, keepDays: 30, now: () => now, log: { info() {}, warn() {} } });
  const of = (...names: string[]) => new Set(names.map((name) => images[name] ?? ''));
  const present = async () => {
    const all = await docker.listImages({ digests: true });
    const digests = new Set(all.flatMap(({ RepoDigests }) => RepoDigests ?? []));
    return NAMES.filter((name) => digests.has(images[name] ?? ''));
  };

  test('are removed after the set number of days, except the one replaced last and those in use', async () => {
    for (const name of NAMES) {
      expect(await build().prune(of(name))).toEqual([]);
      now += DAY_MS;
    }
    now = 31 * DAY_MS;
    const user = await docker.createContainer({ Image: images.oldest ?? '' });
    try {
      expect(await build().prune(of('newest'))).toEqual([images.older]);
      expect(await present()).toEqual(['oldest', 'newer', 'newest']);
    } finally {
      await user.remove();
    }
    expect(await build().prune(of('newest'))).toEqual([images.oldest]);
    // The image that was replaced last is kept for a revert, whatever its age.
    now = 400 * DAY_MS;
    expect(await build().prune(of('newest'))).toEqual([]);
    expect(await present()).toEqual(['newer', 'newest']);
    // An image that a site asks for again is kept, and the other one is now the one that was replaced last.
    expect(await build().prune(of('newer'))).toEqual([]);
    expect(await present()).toEqual(['newer', 'newest']);
  });

  test('are kept if they have a tag; if the record of them is lost, their days are counted from then on', async () => {
    await build().prune(of(...NAMES));
    await docker
      .getImage(images.oldest ?? '')
      .tag({ repo: `tagyard-test/pruning-${process.pid}`, tag: 'mine' });
    stack.defer(async () => {
      await docker.getImage(`tagyard-test/pruning-${process.pid}:mine`).remove();
    });
    now = 100 * DAY_MS;
    await rm(file);
    expect(await build().prune(of('newest'))).toEqual([]);
    now += 10 * DAY_MS;
    expect(await build().prune(of('newest'))).toEqual([]);
    expect(await present()).toEqual(NAMES);
  });
});
