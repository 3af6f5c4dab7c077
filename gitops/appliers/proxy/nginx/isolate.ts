import type { Files } from './generation.ts';

/** Why nginx refuses a tree; `file`: the file that its message names, if it names one. */
export interface ConfigFault {
  readonly error: Error;
  readonly file: string | null;
}

/** A file to write, or with `text: null` to remove. */
export interface FileChange {
  readonly name: string;
  readonly text: string | null;
}

interface Isolated {
  /** A tree that nginx accepts: the base with all changes that are not refused. */
  readonly files: Files;
  readonly refused: ReadonlyMap<FileChange, Error>;
  /** By name, texts of files in the base that Tagyard didn't write and that nginx refuses. */
  readonly strange: Files;
}

/**
 * Finds changes that nginx accepts together, so that a bad vhost fails only its own change and keeps its old
 * file. If the error doesn't name the bad file, a binary search finds it: 2 + log2(N) tests if one of N changes is
 * bad. A bad file of the base is dropped, for example if its certificate is gone. If Tagyard didn't write it
 * (`isOurs`), it is also in `strange`.
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
  const strange = new Map<string, string>();
  for (;;) {
    const files = merge(kept, accepted);
    const fault = await test(files);
    if (fault === null) return { files, refused, strange };

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
      const text = kept.get(bad) ?? '';
      if (!isOurs(text)) strange.set(bad, text);
      kept = new Map([...kept].filter(([name]) => name !== bad));
    }
  }
}

async function badFile(
  files: Files,
  fault: ConfigFault,
  test: (files: Files) => Promise<ConfigFault | null>,
): Promise<string> {
  if (fault.file !== null && files.has(fault.file)) return fault.file;
  if ((await test(new Map())) !== null) throw fault.error; // the main configuration or the host is at fault, no site
  const bad = await firstBad([...files], (some) => test(new Map(some)));
  return bad.item[0];
}

/** The first item with which the list fails; all items before it pass together. */
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
  if (item === undefined || fault === null)
    throw new Error('nginx accepted a configuration that it had refused');
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
