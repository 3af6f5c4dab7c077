import { findPackageJSON } from 'node:module';

/** The packages of the embedded parts: an installation with `--omit=optional` has none of them. */
const EMBEDDED = [
  'miniflare',
  '@electric-sql/pglite',
  '@electric-sql/pglite-prepopulatedfs',
  'oidc-provider',
] as const;
/** The embedded parts' packages, and the package that only the search needs. */
type Optional = (typeof EMBEDDED)[number] | '@duckdb/node-api';

/** The packages of the embedded parts that are not installed. */
export function missingPackages(names: readonly string[] = EMBEDDED): string[] {
  return names.filter((name) => !isInstalled(name));
}

/** Throws an `Error` that says how to install the package if it is missing. */
export function demandInstalled(name: Optional): void {
  if (!isInstalled(name)) throw new Error(howToInstall([name]));
}

/** Loads an optional package. Throws as `demandInstalled`. */
export async function optional<Module>(name: Optional, load: () => Promise<Module>): Promise<Module> {
  demandInstalled(name);
  return await load();
}

export function howToInstall(names: readonly string[]): string {
  return `optional packages are not installed (${names.join(', ')}); install them: npm install --include=optional`;
}

function isInstalled(name: string): boolean {
  try {
    return findPackageJSON(name, import.meta.url) !== undefined;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') return false;
    throw error;
  }
}
