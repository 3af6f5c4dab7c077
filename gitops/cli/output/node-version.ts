import { createRequire } from 'node:module';

interface Package {
  readonly version: string;
  readonly engines: { readonly node: string };
}

// Imports by the package's own name, because the checkout and the package have this file at different depths.
const { version, engines } = createRequire(import.meta.url)('tagyard/package.json') as Package;

/** The version of this program. */
export const RELEASE = version;

/** Why this program can't run on this version of Node, with what to do about it; `null` if it can. */
export function nodeProblem(running: string = process.versions.node, range = engines.node): string | null {
  const least = range.replace('>=', '');
  if (compare(running, least) >= 0) return null;
  return `Node ${running} is too old: tagyard needs Node ${least} or newer; install it, for example by: npm install node@24`;
}

/** Negative if `a` is the older of two versions such as `22.22.0`. Members that are missing count as 0. */
function compare(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => text.split('.').map(Number));
  for (let index = 0; index < 3; index += 1) {
    const difference = (left?.[index] ?? 0) - (right?.[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
