import { globSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { EXTENSION, TAG_SERVER_ENTRY } from './tag-server/entry.ts';

export interface ImageFile {
  /** The absolute path in the image. */
  readonly path: string;
  /** Changes with the content. For Node and its libraries (a hundred megabytes) it is their size and mtime. */
  readonly fingerprint: string;
  readonly content: () => Promise<Buffer>;
  readonly role: 'node' | 'library' | 'entry' | 'source' | 'system';
}

/** A user that is not root, and name resolution by the engine's hosts file, then by DNS. */
const SYSTEM: Readonly<Record<string, string>> = {
  '/etc/passwd':
    'root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n',
  '/etc/group': 'root:x:0:\nnonroot:x:65532:\n',
  '/etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
  // Node reads the nearest package.json to tell a module from a script.
  '/app/package.json': '{ "type": "module" }\n',
  '/app/node_modules/tldts/package.json': '{ "type": "module", "main": "index.js" }\n',
};

/** The public suffix list, as the one file that its package has for browsers. */
const PSL_PATH = '/app/node_modules/tldts/index.js';
const PSL_BUNDLE = join(dirname(createRequire(import.meta.url).resolve('tldts')), '../index.esm.min.js');

const sharedObjects = z.array(z.string());

/** All files that the stand-in needs in an empty image, in a stable order. */
export async function imageFiles(): Promise<ImageFile[]> {
  const libraries = await librariesOfNode();
  const files: ImageFile[] = [
    await program('/usr/local/bin/node', process.execPath, 'node'),
    ...Object.entries(SYSTEM).map(([path, text]) => ({
      path,
      fingerprint: text,
      content: async () => Buffer.from(text),
      role: 'system' as const,
    })),
  ];
  for (const path of libraries) files.push(await program(path, path, 'library'));
  return [...files, ...(await sourceFiles())];
}

async function program(path: string, source: string, role: 'node' | 'library'): Promise<ImageFile> {
  const { size, mtimeMs } = await stat(source);
  return { path, fingerprint: `${size} ${mtimeMs}`, content: () => readFile(source), role };
}

/** The stand-in's sources, and the one package that they import. */
export async function sourceFiles(): Promise<ImageFile[]> {
  const folder = dirname(TAG_SERVER_ENTRY);
  const sources = globSync(`**/*${EXTENSION}`, { cwd: folder }).sort();
  const files = sources.map((source) => [`/app/${source}`, join(folder, source)] as const);
  return await Promise.all(
    [...files, [PSL_PATH, PSL_BUNDLE] as const].map(async ([path, source]) => ({
      path,
      fingerprint: await readFile(source, 'utf8'),
      content: () => readFile(source),
      role: source === TAG_SERVER_ENTRY ? ('entry' as const) : ('source' as const),
    })),
  );
}

/**
 * The shared libraries of this Node and the dynamic loader, from the report of a new Node process, so that `ldd` is not
 * needed. An entry that is no path is provided by the kernel.
 */
async function librariesOfNode(): Promise<string[]> {
  const script =
    'process.report.excludeNetwork = true; JSON.stringify(process.report.getReport().sharedObjects)';
  const { execa } = await import('execa');
  const { stdout } = await execa(process.execPath, ['--print', script], { env: { NODE_OPTIONS: '' } });
  return sharedObjects
    .parse(JSON.parse(stdout))
    .filter((path) => path.startsWith('/'))
    .sort();
}
