import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { type Pack, pack } from 'tar-stream';

/** An image of one statically linked program, which a node can import without a registry. */
interface ProgramImage {
  /** With its tag: `example.test/pause:1`. */
  readonly name: string;
  /** The program's file on this machine. */
  readonly program: string;
  /** Its path and arguments in the image; the program lies at the path. */
  readonly entrypoint: readonly [path: string, ...args: string[]];
  readonly user?: string;
}

/**
 * Writes the image to a file in the form of `docker save` (Docker Image Specification 1.2). Returns its id, `sha256:…`.
 */
export async function writeProgramImage(
  file: string,
  { name, program, entrypoint, user = '65532:65532' }: ProgramImage,
): Promise<string> {
  const layer = await tarOf((add) => add(entrypoint[0].slice(1), program));
  const digest = createHash('sha256').update(layer).digest('hex');
  const config = JSON.stringify({
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    os: 'linux',
    config: { Entrypoint: entrypoint, User: user },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  });
  const manifest = JSON.stringify([{ Config: 'config.json', RepoTags: [name], Layers: ['layer.tar'] }]);
  await writeFile(
    file,
    await tarOf(async (_, text) => {
      text('config.json', Buffer.from(config));
      text('layer.tar', layer);
      text('manifest.json', Buffer.from(manifest));
    }),
  );
  return `sha256:${createHash('sha256').update(config).digest('hex')}`;
}

async function tarOf(
  fill: (
    add: (name: string, source: string) => Promise<void>,
    text: (name: string, content: Buffer) => void,
  ) => Promise<void>,
): Promise<Buffer> {
  const archive: Pack = pack();
  const content = buffer(archive);
  const text = (name: string, data: Buffer, mode = 0o644) => void archive.entry({ name, mode }, data);
  await fill(async (name, source) => text(name, await readFile(source), 0o755), text);
  archive.finalize();
  return await content;
}
