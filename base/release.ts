import { createRequire } from 'node:module';

interface Package {
  readonly version: string;
  readonly engines: { readonly node: string };
}

// Imports by the package's own name, because the checkout and the package have this file at different depths.
const { version, engines } = createRequire(import.meta.url)('tagyard/package.json') as Package;

/** The version of this program. */
export const RELEASE = version;

/** The versions of Node that this program runs on. */
export const NODE_RANGE = engines.node;

/** Negative if `a` is the older of two versions such as `22.22.0`. Members that are missing count as 0. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => text.split('.').map(Number));
  for (let index = 0; index < 3; index += 1) {
    const difference = (left?.[index] ?? 0) - (right?.[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
