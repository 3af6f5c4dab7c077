import { createHash, type Hash } from 'node:crypto';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import Docker from 'dockerode';
import { pack } from 'tar-stream';
import { z } from 'zod';
import { type ImageFile, imageFiles, sourceFiles } from './image-files.ts';

export interface ImageOptions {
  readonly docker?: Docker;
  /** Under which name the image is kept; its tag is the hash of what is in it. */
  readonly repository?: string;
}

/** Distroless's `nonroot`. */
const USER = '65532:65532';

/**
 * The stand-in tag server as an image, made from this very Node without any registry: imported once, found again by
 * the hash of what is in it. Answers `sha256:<id>`, as a manifest's `image` takes it. It runs read-only, as `nonroot`
 * and without capabilities; there is no shell in it. About 125 MB and a second for the first time.
 */
export async function buildDemoImage({
  docker = new Docker(),
  repository = 'tagyard/tag-server',
}: ImageOptions = {}): Promise<string> {
  const files = await imageFiles();
  const changes = instructions(files);
  const tag = contentTag(files, changes);
  const present = await docker.listImages({ filters: { reference: [`${repository}:${tag}`] } });
  const [found] = present;
  if (found !== undefined) return found.Id;

  const stream = await docker.importImage(archive(files), { repo: repository, tag, changes });
  return idOf(await text(stream));
}

/** What stands for the image where child processes run the stand-in instead: another server, another id. */
export async function processImageId(): Promise<string> {
  const hash = createHash('sha256');
  for (const file of await sourceFiles()) addTo(hash, file);
  return `sha256:${hash.digest('hex')}`;
}

/** Dockerfile instructions that an import takes. */
function instructions(files: readonly ImageFile[]): string[] {
  const entry = files.find(({ role }) => role === 'entry');
  const node = files.find(({ role }) => role === 'node');
  const libraries = new Set(
    files.filter(({ role }) => role === 'library').map(({ path }) => path.replace(/\/[^/]+$/, '')),
  );
  return [
    `USER ${USER}`,
    'EXPOSE 8080/tcp',
    // The loader looks here first, wherever this system keeps its libraries.
    `ENV LD_LIBRARY_PATH=${[...libraries].join(':')}`,
    `ENTRYPOINT ${JSON.stringify([node?.path, entry?.path])}`,
  ];
}

function contentTag(files: readonly ImageFile[], changes: readonly string[]): string {
  const hash = createHash('sha256').update(JSON.stringify(changes));
  for (const file of files) addTo(hash, file);
  return hash.digest('hex').slice(0, 16);
}

function addTo(hash: Hash, { path, fingerprint }: ImageFile): void {
  hash.update(`\0${path}\0${fingerprint.length}\0`).update(fingerprint);
}

function archive(files: readonly ImageFile[]): Readable {
  const tar = pack();
  const fill = async () => {
    for (const { path, content, role } of files) {
      const mode = role === 'node' || role === 'library' ? 0o755 : 0o644;
      tar.entry({ name: path.slice(1), mode, mtime: new Date(0) }, await content());
    }
    tar.finalize();
  };
  fill().catch((error: Error) => tar.destroy(error));
  return Readable.from(tar);
}

const outcome = z.object({ status: z.string().optional(), error: z.string().optional() });

/** The engine answers JSON lines; the last status is the image's id, a failure is a line too. */
function idOf(lines: string): string {
  const last = outcome.parse(JSON.parse(lines.trim().split(/\r?\n/).at(-1) ?? '{}'));
  if (last.status?.startsWith('sha256:')) return last.status;
  throw new Error(`Docker did not import the tag server's image: ${last.error ?? lines.slice(0, 200)}`);
}
