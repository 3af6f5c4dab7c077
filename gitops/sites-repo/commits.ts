import type { FileCommit } from './fast-import.ts';

/** An edit of one site's file; `edit` is called again on the newest text whenever a race was lost. */
export interface SiteEdit extends Omit<FileCommit, 'path' | 'text'> {
  readonly site: string;
  /** From the current text (`null`: no file) to the new one (`null`: delete it); the same text makes no commit. */
  edit(current: string | null): string | null;
}

/** What became of an edit: the revision that holds it, and whether that took a commit. */
export interface Committed {
  readonly revision: string;
  readonly changed: boolean;
}

/**
 * Edits in the order in which they came, as commits one on top of the other; later edits of a site see the earlier
 * ones. An edit that throws fails alone. `outcomes` takes the ids of the commits, once they are made.
 */
export function foldEdits(
  edits: readonly SiteEdit[],
  parent: string | null,
  texts: ReadonlyMap<string, string>,
): {
  readonly commits: readonly FileCommit[];
  outcomes(revisions: readonly string[]): PromiseSettledResult<Committed>[];
} {
  const commits: FileCommit[] = [];
  const current = new Map<string, string | null>(texts);
  const places = edits.map(({ site, edit, ...rest }) => {
    const before = current.get(site) ?? null;
    let text: string | null;
    try {
      text = edit(before);
    } catch (reason) {
      return { status: 'rejected', reason } as const;
    }
    // A first revision is made even of nothing: there is none yet to answer with.
    const changed = text !== before || (parent === null && commits.length === 0);
    if (changed) commits.push({ ...rest, path: `${site}.yaml`, text });
    current.set(site, text);
    return { status: 'fulfilled', changed, last: commits.length - 1 } as const;
  });
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
