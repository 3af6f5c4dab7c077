import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { packTree } from '../package/pack.ts';
import { type Architecture, buildImage, CPUS, imageContext, TARGETS } from './images.ts';

/**
 * `npm run images -- [--base <image>] [--architecture arm64] [<target> ...]`: packs this tree, and builds the image of
 * each named part, or of all parts, from the tarball. Prints each image's name and size. `--base`: an image with Node
 * and git, in place of the published base that the Dockerfile names.
 */
const { values, positionals } = parseArgs({
  options: { base: { type: 'string' }, architecture: { type: 'string' } },
  allowPositionals: true,
});
const unknown = positionals.filter((name) => !TARGETS.some((target) => target === name));
const isKnown = (name: string): name is Architecture => name in CPUS;
if (unknown.length > 0 || (values.architecture !== undefined && !isKnown(values.architecture))) {
  console.error(
    `Usage: npm run images -- [--base <image>] [--architecture ${Object.keys(CPUS).join('|')}] [${TARGETS.join('|')} ...]`,
  );
  process.exit(2);
}
const native = process.arch === 'arm64' ? 'arm64' : 'amd64';
const architecture =
  values.architecture !== undefined && isKnown(values.architecture) ? values.architecture : undefined;

const folder = await mkdtemp(join(tmpdir(), 'tagyard-images-'));
try {
  const tarball = await packTree(folder);
  const version = tarball.name.replace(/^tagyard-|\.tgz$/g, '');
  const context = join(folder, 'context');
  await imageContext(tarball, context, architecture ?? native);
  for (const target of TARGETS.filter((name) => positionals.length === 0 || positionals.includes(name))) {
    const tag = `tagyard/${target}:${version}`;
    const bytes = await buildImage(context, { target, tag, base: values.base, architecture });
    console.log(`${tag.padEnd(40)} ${(bytes / 1e6).toFixed(0)} MB`);
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
