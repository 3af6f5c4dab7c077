import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { buildImage, imageContext } from '../../../deploy/images/images.ts';
import { packTree } from '../../../deploy/package/pack.ts';
import { baseImage } from '../containers/base-image.ts';

/**
 * Builds an image of this tree, with this machine's nginx, git and Node, and writes it to a file for the nodes of a cluster.
 * Afterwards, the engine has no image of it.
 */
export async function writePartImage(
  target: 'gateway' | 'provisioner',
  file: string,
  folder: string,
): Promise<void> {
  const tag = `tagyard-test/${target}-${process.pid}`;
  const base = `tagyard-test/${target}-base-${process.pid}`;
  await using _ = await baseImage(base);
  const context = join(folder, 'context');
  await imageContext(await packTree(folder), context, process.arch === 'arm64' ? 'arm64' : 'amd64', [target]);
  try {
    const bytes = await buildImage(context, { target, tag, base });
    console.log(`${target}: ${(bytes / 1e6).toFixed(0)} MB with this machine's base`);
    await execa('docker', ['save', '--output', file, tag]);
  } finally {
    await execa('docker', ['image', 'rm', '--force', tag]);
    await rm(context, { recursive: true, force: true });
  }
}
