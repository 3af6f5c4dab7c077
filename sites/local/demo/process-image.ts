import { createHash, type Hash } from 'node:crypto';
import { type ImageFile, sourceFiles } from './image-files.ts';

/** The id used in place of an image's if the stand-in runs as child processes. It changes with its sources. */
export async function processImageId(): Promise<string> {
  const hash = createHash('sha256');
  for (const file of await sourceFiles()) addTo(hash, file);
  return `sha256:${hash.digest('hex')}`;
}

/** Adds what identifies a file's content. */
export function addTo(hash: Hash, { path, fingerprint }: ImageFile): void {
  hash.update(`\0${path}\0${fingerprint.length}\0`).update(fingerprint);
}
