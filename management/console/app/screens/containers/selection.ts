import { useState } from 'preact/hooks';
import { fetchContainers, type ListedContainer, type ListFilter } from '../../data/containers.ts';
import { mayEdit } from '../../data/session.ts';

/** The most containers in one answer of the API. */
const PAGE = 200;

export interface Selection {
  readonly chosen: ReadonlyMap<string, ListedContainer>;
  /** While all that match are read: how many choosable ones were read so far; else `null`. */
  readonly reading: number | null;
  readonly error: unknown;
  /** Whether all that match are chosen. */
  readonly isAll: boolean;
  /** `range`: also those between the one that was changed last and this one. */
  toggle(container: ListedContainer, range: boolean): void;
  togglePage(): void;
  chooseAll(filter: ListFilter): Promise<void>;
  clear(): void;
}

/** Whether the person may change the container at all. */
export function isChoosable({ clientId }: ListedContainer): boolean {
  return mayEdit(clientId);
}

interface Chosen {
  readonly key: string;
  readonly chosen: ReadonlyMap<string, ListedContainer>;
  readonly last: string | null;
  readonly isAll: boolean;
}

/**
 * The containers that a person has chosen in a list. `key` names the filter. With another filter, none is chosen at
 * first.
 */
export function useSelection(key: string, page: readonly ListedContainer[]): Selection {
  const none: Chosen = { key, chosen: new Map(), last: null, isAll: false };
  const [held, hold] = useState(none);
  const [reading, setReading] = useState<number | null>(null);
  const [error, setError] = useState<unknown>(null);
  const state = held.key === key ? held : none;
  const rows = page.filter(isChoosable);
  const change = (containers: readonly ListedContainer[], isOn: boolean, last: string | null) => {
    const chosen = new Map(state.chosen);
    for (const one of containers) {
      if (isOn) chosen.set(one.id, one);
      else chosen.delete(one.id);
    }
    hold({ key, chosen, last, isAll: false });
  };
  return {
    chosen: state.chosen,
    isAll: state.isAll,
    reading,
    error,
    toggle: (container, range) => {
      const isOn = !state.chosen.has(container.id);
      const from = rows.findIndex(({ id }) => id === state.last);
      const to = rows.findIndex(({ id }) => id === container.id);
      const span =
        range && from !== -1 ? rows.slice(Math.min(from, to), Math.max(from, to) + 1) : [container];
      change(span, isOn, container.id);
    },
    togglePage: () => change(rows, !rows.every(({ id }) => state.chosen.has(id)), null),
    chooseAll: async (filter) => {
      const all = new Map<string, ListedContainer>();
      setError(null);
      setReading(0);
      try {
        let cursor: string | null | undefined;
        do {
          const { containers, next } = await fetchContainers({
            ...filter,
            limit: PAGE,
            ...(cursor ? { cursor } : {}),
          });
          for (const one of containers) if (isChoosable(one)) all.set(one.id, one);
          setReading(all.size);
          cursor = next;
        } while (cursor !== null);
        hold({ key, chosen: all, last: null, isAll: true });
      } catch (failure) {
        setError(failure);
      } finally {
        setReading(null);
      }
    },
    clear: () => hold(none),
  };
}
