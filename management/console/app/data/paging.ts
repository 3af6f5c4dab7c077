import { useState } from 'preact/hooks';
import { type Query, useQuery } from './query.ts';

interface PageOf<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

export interface Paged<Item> {
  readonly query: Query<PageOf<Item>>;
  readonly isFirst: boolean;
  next(): void;
  back(): void;
}

/** Reads a list page by page. `key` also names its filter: another key begins at the first page. */
export function usePages<Item>(
  key: string,
  load: (cursor: string | undefined) => Promise<PageOf<Item>>,
): Paged<Item> {
  const [at, setAt] = useState<{ readonly key: string; readonly cursors: readonly string[] }>({
    key,
    cursors: [],
  });
  const cursors = at.key === key ? at.cursors : [];
  const cursor = cursors.at(-1);
  const query = useQuery(`${key} ${cursor ?? ''}`, () => load(cursor));
  return {
    query,
    isFirst: cursors.length === 0,
    next: () => {
      const next = query.data?.next;
      if (next) setAt({ key, cursors: [...cursors, next] });
    },
    back: () => setAt({ key, cursors: cursors.slice(0, -1) }),
  };
}
