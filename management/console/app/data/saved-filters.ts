import { signal } from '@preact/signals';
import { me } from './session.ts';

/** A filter of the list of containers, kept under a name that a person chose. */
export interface SavedFilter {
  readonly name: string;
  /** The query of the list's address, such as `state=failing&q=shop`. */
  readonly query: string;
}

const MOST = 20;

/** The API doesn't store filters: this browser keeps them, under a key for each person who logs in here. */
const keyOf = () => `tagyard-filters ${me().subject}`;

const known = signal<{ readonly key: string; readonly filters: readonly SavedFilter[] } | null>(null);

export function savedFilters(): readonly SavedFilter[] {
  const key = keyOf();
  if (known.value?.key !== key) known.value = { key, filters: stored(key) };
  return known.value.filters;
}

/** Keeps a filter; one of the same name is replaced. The newest is the first. */
export function saveFilter(filter: SavedFilter): void {
  keep([filter, ...savedFilters().filter(({ name }) => name !== filter.name)].slice(0, MOST));
}

export function forgetFilter(name: string): void {
  keep(savedFilters().filter((one) => one.name !== name));
}

function keep(filters: readonly SavedFilter[]): void {
  const key = keyOf();
  known.value = { key, filters };
  try {
    localStorage.setItem(key, JSON.stringify(filters));
  } catch {
    // Without storage they last until the page is closed.
  }
}

function stored(key: string): readonly SavedFilter[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
    return Array.isArray(value) ? value.flatMap(filterFrom) : [];
  } catch {
    return [];
  }
}

function filterFrom(one: unknown): readonly SavedFilter[] {
  if (typeof one !== 'object' || one === null || !('name' in one) || !('query' in one)) return [];
  return [{ name: String(one.name), query: String(one.query) }];
}
