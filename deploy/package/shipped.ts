import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const LOCK = fileURLToPath(new URL('../../package-lock.json', import.meta.url));

type Entry = Readonly<Record<string, unknown>> & { readonly dev?: true; readonly devOptional?: true };
const lockFile = z.object({ packages: z.record(z.string(), z.custom<Entry>()) });

/**
 * The `package.json` and `package-lock.json` of a project whose only dependency is Tagyard from `tarball`. All packages
 * have the versions of this tree's lock file; its development packages are not among them.
 */
export function projectOf(tarball: string): Readonly<Record<string, string>> {
  const { packages } = lockFile.parse(JSON.parse(readFileSync(LOCK, 'utf8')));
  const { '': own, ...others } = packages;
  const shipped = Object.entries(others)
    .filter(([, { dev }]) => dev !== true)
    // `devOptional`: an optional package and a development package need it. Without the latter, it is optional.
    .map(([path, { devOptional, ...entry }]) => [path, devOptional ? { ...entry, optional: true } : entry]);
  const { devDependencies: _, ...tagyard } = own ?? {};
  const resolved = `file:${tarball}`;
  const root = { name: 'tagyard-host', version: '1.0.0', dependencies: { tagyard: resolved } };
  const lock = {
    name: root.name,
    version: root.version,
    lockfileVersion: 3,
    requires: true,
    packages: { '': root, 'node_modules/tagyard': { ...tagyard, resolved }, ...Object.fromEntries(shipped) },
  };
  return { 'package.json': JSON.stringify(root), 'package-lock.json': JSON.stringify(lock) };
}
