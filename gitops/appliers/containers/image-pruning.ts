import type Docker from 'dockerode';
import { z } from 'zod';
import { writeDurably } from '../../../base/durable.ts';
import { readJsonFile } from '../../../base/json-file.ts';
import type { Log } from '../../../base/log.ts';
import { callDocker, DockerRefusal, limited } from '../../clients/docker.ts';

interface ImagePruningOptions {
  readonly docker: Docker;
  /** Path of the file that records when each image was last desired. If the file is lost, counting starts again. */
  readonly file: string;
  /** An image is removed if no manifest has asked for it in this many days. */
  readonly keepDays: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}

const DAY_MS = 86_400_000;
/** The shortest time between two prunings, in milliseconds. */
const INTERVAL_MS = 3_600_000;

/** By image, when it was last desired: milliseconds since 1970. */
const lastDesired = z.record(z.string(), z.number());

/** `<repository>@sha256:<digest>`: an image that can be pulled again. */
const PULLABLE = /^(.+)@sha256:[0-9a-f]{64}$/;

/**
 * Removes images that manifests no longer ask for. Keeps images that are in use, have a tag or came from no registry.
 * Also keeps the image that was replaced last, whatever its age, so that a revert needs no pull.
 */
export class ImagePruning {
  readonly #options: ImagePruningOptions;
  #nextAt = 0;
  #running: Promise<unknown> | null = null;

  constructor(options: ImagePruningOptions) {
    this.#options = options;
  }

  /** Prunes in the background, at most once an hour. `desired`: the images of all sites of this host. */
  start(desired: ReadonlySet<string>): void {
    const { now, log } = this.#options;
    if (this.#running !== null || now() < this.#nextAt) return;
    this.#nextAt = now() + INTERVAL_MS;
    this.#running = this.prune(desired)
      .catch((err: unknown) => log.warn({ err }, 'unused images could not be removed'))
      .finally(() => {
        this.#running = null;
      });
  }

  /** Waits until the pruning in the background has ended. */
  async ended(): Promise<void> {
    await this.#running;
  }

  /** Removes unused images now, and returns those that it removed. */
  async prune(desired: ReadonlySet<string>): Promise<string[]> {
    const { docker, file, keepDays, now, log } = this.#options;
    const known = new Map(Object.entries(await readJsonFile(file, lastDesired).catch(() => ({}))));
    for (const image of desired) if (PULLABLE.test(image)) known.set(image, now());
    const present = await this.#present(new Set([...known.keys()].flatMap(repositoryOf)));
    for (const image of known.keys()) if (!present.has(image) && !desired.has(image)) known.delete(image);
    for (const image of present) if (!known.has(image)) known.set(image, now());
    const [, ...unused] = [...known].filter(([image]) => !desired.has(image)).sort(([, a], [, b]) => b - a);
    const removed: string[] = [];
    for (const [image, at] of unused) {
      if (at > now() - keepDays * DAY_MS) continue;
      if (!(await removeUnlessUsed(docker, image))) continue;
      removed.push(image);
      known.delete(image);
    }
    await writeDurably(file, `${JSON.stringify(Object.fromEntries(known))}\n`);
    if (removed.length > 0) log.info({ images: removed }, 'unused images were removed');
    return removed;
  }

  /** The engine's untagged images of these repositories. */
  async #present(repositories: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const { docker } = this.#options;
    const all = await callDocker(
      'listing images',
      docker.listImages({ digests: true, abortSignal: limited() }),
    );
    const untagged = all.filter(({ RepoTags }) => (RepoTags ?? []).every((tag) => tag === '<none>:<none>'));
    const digests = untagged.flatMap(({ RepoDigests }) => RepoDigests ?? []);
    return new Set(digests.filter((digest) => repositoryOf(digest).some((name) => repositories.has(name))));
  }
}

function repositoryOf(image: string): string[] {
  const name = PULLABLE.exec(image)?.[1];
  return name === undefined ? [] : [name];
}

/** True if the image is gone now. False if a container uses it, or the removal failed for another reason. */
async function removeUnlessUsed(docker: Docker, image: string): Promise<boolean> {
  try {
    await callDocker(`removing ${image}`, docker.getImage(image).remove({ abortSignal: limited() }));
    return true;
  } catch (error) {
    return error instanceof DockerRefusal && error.status === 404;
  }
}
