import { posix } from 'node:path';
import type { Violations } from './rules.ts';
import { importsOf, type SourceFile } from './source.ts';

/** An import of one file of the tree by another one, type imports included. */
export interface Arrow {
  readonly from: string;
  readonly to: string;
}

/** Every import between these files; imports of packages and of files outside the list are omitted. */
export function arrowsOf(files: readonly SourceFile[]): Arrow[] {
  const paths = new Set(files.map(({ path }) => path));
  return files.flatMap((file) => {
    const targets = new Set(importsOf(file).map(({ target }) => target));
    return [...targets].filter((to) => paths.has(to)).map((to) => ({ from: file.path, to }));
  });
}

/** Groups of nodes that reach each other, as sorted lists; Tarjan's algorithm. */
function cyclesOf(arrows: readonly Arrow[]): string[][] {
  const targets = Map.groupBy(arrows, ({ from }) => from);
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const cycles: string[][] = [];
  const visit = (node: string): void => {
    index.set(node, index.size);
    low.set(node, index.get(node) ?? 0);
    stack.push(node);
    for (const { to } of targets.get(node) ?? []) {
      if (!index.has(to)) visit(to);
      if (stack.includes(to)) low.set(node, Math.min(low.get(node) ?? 0, low.get(to) ?? 0));
    }
    if (low.get(node) !== index.get(node)) return;
    const cycle = stack.splice(stack.indexOf(node));
    if (cycle.length > 1) cycles.push(cycle.sort());
  };
  for (const { from } of arrows) if (!index.has(from)) visit(from);
  return cycles;
}

/** No file imports itself through others. */
export function fileCycles(files: readonly SourceFile[]): Violations {
  return cyclesOf(arrowsOf(files)).map((cycle) => `import cycle: ${cycle.join(', ')}`);
}

/** No two folders import each other. `isRoot`: a composition root or list file, which may import what is below it. */
export function mutualFolders(files: readonly SourceFile[], isRoot: (path: string) => boolean): Violations {
  const between = new Map<string, Arrow>();
  for (const arrow of arrowsOf(files)) {
    const [from, to] = [posix.dirname(arrow.from), posix.dirname(arrow.to)];
    if (from !== to && !isRoot(arrow.from)) between.set(`${from} ${to}`, arrow);
  }
  return [...between].flatMap(([pair, there]) => {
    const [from = '', to = ''] = pair.split(' ');
    const back = between.get(`${to} ${from}`);
    if (from > to || back === undefined) return [];
    return [`${from} and ${to} import each other: ${there.from} -> ${there.to}, ${back.from} -> ${back.to}`];
  });
}

/** A floor with its rooms, which are globs over paths. In a list of floors, the first glob that matches a file is its room. */
export interface Floor {
  readonly number: number;
  readonly rooms: readonly string[];
}

/**
 * Arrows run downward: a file imports files of its own room, or of a room on a lower floor. Two rooms of one floor
 * don't import each other.
 */
export function upwardImports(files: readonly SourceFile[], floors: readonly Floor[]): Violations {
  const placeOf = (path: string) => {
    for (const { number, rooms } of floors) {
      const room = rooms.find((pattern) => posix.matchesGlob(path, pattern));
      if (room !== undefined) return { number, room };
    }
    return null;
  };
  const homeless = files
    .filter(({ path }) => placeOf(path) === null)
    .map(({ path }) => `${path}: on no floor`);
  const upward = arrowsOf(files).flatMap(({ from, to }) => {
    const [importer, imported] = [placeOf(from), placeOf(to)];
    if (importer === null || imported === null || importer.room === imported.room) return [];
    return imported.number < importer.number
      ? []
      : [`${from} (floor ${importer.number}) imports ${to} (floor ${imported.number})`];
  });
  return [...homeless, ...upward];
}
