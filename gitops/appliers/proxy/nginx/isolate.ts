import { TerminalError } from '../../../base/errors.ts';
import type { Files } from './generations.ts';

/** Why nginx refuses a tree; `file` is the one that it names, where it names one. */
export interface ConfigFault {
  readonly error: Error;
  readonly file: string | null;
}

/** A file that is to be written (`text`) or to go (`null`). */
export interface FileChange {
  readonly name: string;
  readonly text: string | null;
}

interface Isolated {
  /** What nginx accepts: the base, with every change that did no harm. */
  readonly files: Files;
  readonly refused: ReadonlyMap<FileChange, Error>;
}

/**
 * Finds the most that nginx accepts, so that one bad vhost costs only its own change: its file stays as it was. The
 * error names it, or the shortest run of changes that fails is searched for: 2 + log2(N) tests for one bad in N.
 * A file of the base that went bad by itself (its certificate is gone, say) is left out; where that isn't ours
 * (`isOurs`), nothing is done and a `TerminalError` names it.
 */
export async function isolate(
  base: Files,
  changes: readonly FileChange[],
  test: (files: Files) => Promise<ConfigFault | null>,
  isOurs: (text: string) => boolean,
): Promise<Isolated> {
  let kept = base;
  let accepted = changes;
  const refused = new Map<FileChange, Error>();
  for (;;) {
    const files = merge(kept, accepted);
    const fault = await test(files);
    if (fault === null) return { files, refused };

    const named = accepted.find(({ name, text }) => text !== null && name === fault.file);
    if (named !== undefined) {
      refused.set(named, fault.error);
      accepted = accepted.filter((change) => change !== named);
      continue;
    }
    const baseFault = files === kept || accepted.length === 0 ? fault : await test(kept);
    if (baseFault === null) {
      const bad = await firstBad(accepted, (some) => test(merge(kept, some)));
      refused.set(bad.item, bad.fault.error);
      accepted = accepted.filter((change) => change !== bad.item);
    } else {
      const bad = await badFile(kept, baseFault, test);
      if (!isOurs(kept.get(bad.name) ?? '')) {
        throw new TerminalError(`${bad.name} isn't Tagyard's, and nginx refuses it: ${bad.error.message}`, {
          cause: bad.error,
        });
      }
      kept = new Map([...kept].filter(([name]) => name !== bad.name));
    }
  }
}

async function badFile(
  files: Files,
  fault: ConfigFault,
  test: (files: Files) => Promise<ConfigFault | null>,
) {
  if (fault.file !== null && files.has(fault.file)) return { name: fault.file, error: fault.error };
  if ((await test(new Map())) !== null) throw fault.error; // not a site's fault: the main configuration or the host
  const bad = await firstBad([...files], (some) => test(new Map(some)));
  return { name: bad.item[0], error: bad.fault.error };
}

/** The item with which a failing list begins to fail; all before it together pass. */
async function firstBad<Item>(
  items: readonly Item[],
  test: (some: readonly Item[]) => Promise<ConfigFault | null>,
): Promise<{ item: Item; fault: ConfigFault }> {
  let passes = 0;
  let fails = items.length;
  let fault: ConfigFault | null = null;
  while (fails - passes > 1) {
    const middle = (passes + fails) >> 1;
    const found = await test(items.slice(0, middle));
    if (found === null) passes = middle;
    else {
      fails = middle;
      fault = found;
    }
  }
  const item = items[fails - 1];
  fault ??= await test(items);
  if (item === undefined || fault === null) throw new Error('nginx changed its mind about a configuration');
  return { item, fault };
}

export function merge(base: Files, changes: readonly FileChange[]): Files {
  const files = new Map(base);
  for (const { name, text } of changes) {
    if (text === null) files.delete(name);
    else files.set(name, text);
  }
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}
