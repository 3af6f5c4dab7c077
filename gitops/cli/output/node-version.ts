import { compareVersions, NODE_RANGE } from '../../../base/release.ts';

/** Why this program can't run on this version of Node, with what to do about it; `null` if it can. */
export function nodeProblem(running: string = process.versions.node, range = NODE_RANGE): string | null {
  const least = range.replace('>=', '');
  if (compareVersions(running, least) >= 0) return null;
  return `Node ${running} is too old: tagyard needs Node ${least} or newer; install it, for example by: npm install node@24`;
}
