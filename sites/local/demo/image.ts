import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import Docker from 'dockerode';
import { pack } from 'tar-stream';
import { z } from 'zod';
import { type ImageFile, imageFiles } from './image-files.ts';
import { addTo } from './process-image.ts';

interface DemoImageOptions {
  readonly docker?: Docker;
  /** The image's name; its tag is the hash of its content. */
  readonly repository?: string;
}

/** Distroless's `nonroot`. */
const USER = '65532:65532';

/**
 * Builds an image of the stand-in tag server from the running Node, without a registry. It is imported once and found
 * again by the hash of its content. Returns `sha256:<id>`, the form of a manifest's `image`. The image runs read-only,
 * as `nonroot`, without capabilities and without a shell. The import takes about a second and 125 MB.
 */
export async function buildDemoImage({
  docker = new Docker(),
  repository = 'tagyard/tag-server',
}: DemoImageOptions = {}): Promise<string> {
  const files = await imageFiles();
  const changes = instructions(files);
  const tag = contentTag(files, changes);
  const [found] = await docker.listImages({ filters: { reference: [`${repository}:${tag}`] } });
  if (found !== undefined) return found.Id;

  const stream = await docker.importImage(archive(files), { repo: repository, tag, changes });
  return idOf(await text(stream));
}

/** The Dockerfile instructions of the import. */
function instructions(files: readonly ImageFile[]): string[] {
  const entry = files.find(({ role }) => role === 'entry');
  const node = files.find(({ role }) => role === 'node');
  const libraries = new Set(
    files.filter(({ role }) => role === 'library').map(({ path }) => path.replace(/\/[^/]+$/, '')),
  );
  return [
    `USER ${USER}`,
    'EXPOSE 8080/tcp',
    // The dynamic loader searches these folders first, so the libraries can have the same paths as on this system.
    `ENV LD_LIBRARY_PATH=${[...libraries].join(':')}`,
    `ENTRYPOINT ${JSON.stringify([node?.path, entry?.path])}`,
  ];
}

function contentTag(files: readonly ImageFile[], changes: readonly string[]): string {
  const hash = createHash('sha256').update(JSON.stringify(changes));
  for (const file of files) addTo(hash, file);
  return hash.digest('hex').slice(0, 16);
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

const importLine = z.object({ status: z.string().optional(), error: z.string().optional() });

/** The engine answers JSON lines. The last one has the image's id as its status, or the error. */
function idOf(lines: string): string {
  const last = importLine.parse(JSON.parse(lines.trim().split(/\r?\n/).at(-1) ?? '{}'));
  if (last.status?.startsWith('sha256:')) return last.status;
  throw new Error(`Docker did not import the tag server's image: ${last.error ?? lines.slice(0, 200)}`);
}
