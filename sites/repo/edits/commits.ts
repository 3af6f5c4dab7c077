import type { FileCommit } from './fast-import.ts';
import { pathOf } from './paths.ts';

/** An edit of one site's file. `edit` runs again on the newest text each time another writer commits first. */
export interface SiteEdit extends Omit<FileCommit, 'path' | 'text'> {
  readonly site: string;
  /** Maps the text (`null`: none) to the new one (`null`: delete). Unchanged text is committed only to an empty repo. */
  edit(current: string | null): string | null | Promise<string | null>;
}

/** The revision that contains an edit, and whether the edit made a commit. */
export interface Committed {
  readonly revision: string;
  readonly changed: boolean;
}

interface FoldedEdits {
  readonly commits: readonly FileCommit[];
  outcomes(revisions: readonly string[]): PromiseSettledResult<Committed>[];
}

/** The outcome of an edit. `last`: index of the commit that has its text; -1: the parent has it. */
type Place =
  | PromiseRejectedResult
  | { readonly status: 'fulfilled'; readonly changed: boolean; readonly last: number };

/**
 * Converts edits to a chain of commits, in order. Later edits of a site start from the text of the earlier ones. An edit
 * that throws affects no other. `outcomes` gives the outcome of each edit, from the ids of the commits made.
 */
export async function foldEdits(
  edits: readonly SiteEdit[],
  parent: string | null,
  texts: ReadonlyMap<string, string>,
): Promise<FoldedEdits> {
  const commits: FileCommit[] = [];
  const current = new Map<string, string | null>(texts);
  const places: Place[] = [];
  for (const { site, edit, ...rest } of edits) {
    const before = current.get(site) ?? null;
    let text: string | null;
    try {
      text = await edit(before);
    } catch (reason) {
      places.push({ status: 'rejected', reason });
      continue;
    }
    // The first edit of an empty repository makes a commit in any case: its answer needs a revision.
    const changed = text !== before || (parent === null && commits.length === 0);
    if (changed) commits.push({ ...rest, path: pathOf(site), text });
    current.set(site, text);
    places.push({ status: 'fulfilled', changed, last: commits.length - 1 });
  }
  return {
    commits,
    outcomes: (revisions) =>
      places.map((place) => {
        if (place.status === 'rejected') return place;
        const { status, changed, last } = place;
        return { status, value: { revision: revisions[last] ?? parent ?? '', changed } };
      }),
  };
}
