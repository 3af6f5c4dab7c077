import { ApiProblem, type components } from '../../../../base/client/index.ts';
import { api, COMMAS } from './api.ts';

export type Container = components['schemas']['Container'];
export type ListedContainer = components['schemas']['ContainerSummary'];
type State = Container['state']['name'];

export const CONTAINER_STATES: readonly State[] = [
  'serving',
  'failing',
  'change_refused',
  'waits_for_dns',
  'setting_up',
  'paused',
  'off',
  'removed',
];
/** Those that ask for something to be done. */
export const TROUBLE: readonly State[] = ['failing', 'change_refused', 'waits_for_dns'];
const SORT_KEYS = [
  ...(['createdAt', 'updatedAt', 'name', 'state'] as const),
  ...(['domain', 'requests', 'errors', 'lastVisit'] as const),
] as const;
type SortKey = (typeof SORT_KEYS)[number];
type Sort = SortKey | `-${SortKey}`;

/** Which containers a list shows, as the page's address has it. */
export interface ListFilter {
  readonly q?: string;
  readonly client?: string;
  readonly state?: readonly State[];
  readonly health?: readonly Container['health'][];
  readonly sort?: Sort;
  readonly cursor?: string;
  readonly limit?: number;
}

/** States and sort orders that the API doesn't know are ignored. */
export function filterOf(query: Readonly<Record<string, string>>): ListFilter {
  const wanted = query.state?.split(',') ?? [];
  const state = CONTAINER_STATES.filter((one) => wanted.includes(one));
  const sort = SORT_KEYS.flatMap((key) => [key, `-${key}`] as const).find((one) => one === query.sort);
  return {
    ...(query.q ? { q: query.q } : {}),
    ...(query.client ? { client: query.client } : {}),
    ...(state.length > 0 ? { state } : {}),
    ...(sort === undefined ? {} : { sort }),
    ...(query.cursor ? { cursor: query.cursor } : {}),
  };
}

export async function fetchContainers({ state, health, ...filter }: ListFilter) {
  const { data } = await api.get('/server-containers', {
    params: {
      query: {
        ...filter,
        ...(state === undefined ? {} : { state: [...state] }),
        ...(health === undefined ? {} : { health: [...health] }),
        view: 'summary',
      },
    },
    querySerializer: COMMAS,
  });
  return { containers: data.containers as readonly ListedContainer[], next: data.next }; // as `view` asks
}

export async function fetchCounts(client?: string) {
  const { data } = await api.get('/server-containers/summary', {
    params: { query: client === undefined ? {} : { client } },
  });
  return data;
}

/** A container and its version, which a change names. */
export interface Versioned {
  readonly container: Container;
  readonly etag: string | null;
}

export async function readContainer(id: string): Promise<Versioned> {
  const { data, etag } = await api.get('/server-containers/{id}', { params: { path: { id } } });
  return { container: data, etag };
}

/** Whether a change was refused because the container has changed since it was read (412). */
export function isConflict(failure: unknown): boolean {
  return failure instanceof ApiProblem && failure.status === 412;
}
