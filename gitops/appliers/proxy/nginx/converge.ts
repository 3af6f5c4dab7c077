import type { NginxDaemon } from './daemon.ts';
import type { Files, Generation } from './generation.ts';
import type { Generations } from './generations.ts';
import { type FileChange, isolate, merge } from './isolate.ts';
import { NameConflict, NameTooLong } from './name-conflict.ts';

export interface ConvergerDeps {
  readonly generations: Generations;
  readonly daemon: NginxDaemon;
  /** The main configuration as it must be. */
  readonly main: string;
  /** True if a file's text carries our mark. */
  readonly isOurs: (text: string) => boolean;
}

interface Converged {
  /** False if nginx already served everything, so that nothing was reloaded. */
  readonly changed: boolean;
  readonly refused: ReadonlyMap<FileChange, Error>;
}

/**
 * Brings nginx from the current generation to one with `changes` (docs/reconciler.md, rule 7): tests a candidate, makes
 * it durable, swaps it in, reloads, and waits until nginx serves it. On failure it restores the old generation and
 * throws, or refuses only the change whose name is at fault. Calls must not overlap.
 */
export async function converge(deps: ConvergerDeps, changes: readonly FileChange[]): Promise<Converged> {
  const { generations, daemon, main, isOurs } = deps;
  const current = await generations.current();
  const base: Files = current?.files ?? new Map();
  const wanted = merge(base, changes);
  const served = current !== null && (await daemon.servedVersion()) === current.version;
  if (served && current.isSound && isSame(current, main, wanted))
    return { changed: false, refused: new Map() };

  const test = async (files: Files) => {
    await generations.stage({ main, files }, current);
    return await daemon.test();
  };
  const { files, refused, strange } = await isolate(base, changes, test, isOurs);
  await generations.setAside(strange);
  if (current?.isSound && isSame(current, main, files)) {
    if (!served) await daemon.activate(current.version, []);
    return { changed: !served, refused };
  }
  const next = await generations.promote({ main, files }, current);
  const fresh = [...files].flatMap(([name, text]) => (base.get(name) === text ? [] : [text]));
  try {
    await daemon.activate(next.version, fresh);
  } catch (error) {
    if (current !== null) await generations.swapTo(current.name);
    // If the reload was only slow, nginx must read the restored tree again.
    await daemon.reread();
    await generations.prune((current ?? next).name);
    const isNameFault = error instanceof NameConflict || error instanceof NameTooLong;
    if (current === null || !isNameFault) throw error;
    // The system's nginx has names and limits of its own. It reports a conflict with them only now.
    const theirs = changes.find(({ text }) => error.isIn(text));
    if (theirs === undefined) throw error;
    const others = await converge(
      deps,
      changes.filter((change) => change !== theirs),
    );
    return { ...others, refused: new Map([...refused, ...others.refused, [theirs, error]]) };
  }
  await generations.prune(next.name);
  return { changed: true, refused };
}

function isSame(current: Generation, main: string, files: Files): boolean {
  return (
    current.main === main &&
    current.files.size === files.size &&
    [...files].every(([name, text]) => current.files.get(name) === text)
  );
}
