import { globSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { SourceFile } from './source.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The files that were read. An unchanged file is the same object again, so that `parse` parses it once. */
const READ = new Map<string, { readonly changed: number; readonly file: SourceFile }>();

/** The tree's files that match, without what is installed or built, in a stable order. */
export function files(...patterns: string[]): SourceFile[] {
  return globSync(patterns, { cwd: ROOT, exclude: ['**/node_modules', '**/.git', '**/.tagyard', '**/dist'] })
    .sort()
    .flatMap((path) => {
      const status = statSync(ROOT + path);
      if (!status.isFile()) return [];
      const { mtimeMs: changed } = status;
      const known = READ.get(path);
      if (known?.changed === changed) return [known.file];
      const file = { path, text: readFileSync(ROOT + path, 'utf8') };
      READ.set(path, { changed, file });
      return [file];
    });
}

/** The project's own sources, without declarations that are generated from contracts of others. */
export function sources(): SourceFile[] {
  return files('{base,edge,plugins,gitops,management,sites}/**/*.{ts,tsx}').filter(
    ({ path }) => !path.endsWith('.d.ts'),
  );
}

/** The build of the package and of the images, which runs on a developer's machine. */
export function deploySources(): SourceFile[] {
  return files('deploy/**/*.ts');
}
