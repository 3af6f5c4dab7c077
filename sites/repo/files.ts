import { MAX_BYTES } from '../manifest/limits.ts';
import { pathOf } from './edits/paths.ts';
import type { SiteBlob } from './listing.ts';

/** Replaces the text of a file above the size limit, which isn't read. The parser refuses it for its size. */
const OVERSIZED = '#'.repeat(MAX_BYTES + 1);

/** A site's file at some revision. `text` is the blob decoded as UTF-8, or a placeholder of more than `MAX_BYTES`. */
export interface SiteFile {
  readonly site: string;
  readonly path: string;
  readonly blob: string;
  readonly text: string;
}

type Git = (args: readonly string[], input: string) => Promise<Buffer>;

/** Reads these files by one `cat-file --batch`. Throws `UnreadableBlobError`. */
export async function readFiles(git: Git, blobs: readonly SiteBlob[]): Promise<SiteFile[]> {
  const texts = await readBlobs(
    git,
    blobs.map(({ blob }) => blob),
  );
  return blobs.map(({ site, blob }) => ({
    site,
    path: pathOf(site),
    blob,
    text: texts.get(blob) ?? '',
  }));
}

/** Texts by blob id. Throws where an object is missing or corrupt: an unreadable file must not count as a missing one. */
async function readBlobs(git: Git, blobs: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  const wanted = [...new Set(blobs)];
  if (wanted.length === 0) return texts;
  const sizes = (await git(['cat-file', '--batch-check'], `${wanted.join('\n')}\n`)).toString();
  for (const [, blob = '', size] of sizes.matchAll(/^(\S+) blob (\d+)$/gm)) {
    if (Number(size) > MAX_BYTES) texts.set(blob, OVERSIZED);
  }
  const readable = wanted.filter((blob) => !texts.has(blob));
  if (readable.length === 0) return texts;
  const output = await git(['cat-file', '--batch'], `${readable.join('\n')}\n`);
  let offset = 0;
  for (const blob of readable) {
    const newline = output.indexOf(0x0a, offset);
    const [name, type, size] = output.subarray(offset, newline).toString().split(' ');
    if (name !== blob || type !== 'blob' || size === undefined) {
      throw new UnreadableBlobError(`object ${blob} can't be read`);
    }
    const start = newline + 1;
    texts.set(blob, output.subarray(start, start + Number(size)).toString());
    offset = start + Number(size) + 1;
  }
  return texts;
}

/** An object is missing or corrupt. */
export class UnreadableBlobError extends Error {
  override name = 'UnreadableBlobError';
}
