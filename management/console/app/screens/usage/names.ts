import { useEffect, useState } from 'preact/hooks';
import { api } from '../../data/api.ts';
import { fetchContainers } from '../../data/containers.ts';
import { me } from '../../data/session.ts';
import type { UsageNames } from '../../data/usage.ts';

const OF_PAGE = 200;
/** The most names that are read of containers, and of clients. */
const MOST_NAMES = 2_000;

/** The names of containers and clients; where a name isn't known, the beginning of the id. */
export function useNames(): UsageNames {
  const [containers, setContainers] = useState<Names>(new Map());
  const [clients, setClients] = useState<Names>(new Map(me().clients.map(({ id, name }) => [id, name])));
  useEffect(() => {
    readNames(readContainers).then(setContainers, () => {});
    // Operators see the usage of clients that they are no members of.
    if (me().isOperator) readNames(readClients).then(setClients, () => {});
  }, []);
  return {
    container: (id) => containers.get(id) ?? id.slice(0, 8),
    client: (id) => clients.get(id) ?? id.slice(0, 8),
  };
}

type Names = ReadonlyMap<string, string>;

interface NamedPage {
  readonly items: readonly { readonly id: string; readonly name: string }[];
  readonly next: string | null;
}

async function readNames(
  read: (page: { limit: number; cursor?: string }) => Promise<NamedPage>,
): Promise<Names> {
  const names = new Map<string, string>();
  let cursor: string | undefined;
  do {
    const { items, next } = await read({ limit: OF_PAGE, ...(cursor === undefined ? {} : { cursor }) });
    for (const { id, name } of items) names.set(id, name);
    cursor = next ?? undefined;
  } while (cursor !== undefined && names.size < MOST_NAMES);
  return names;
}

async function readContainers(page: { limit: number; cursor?: string }): Promise<NamedPage> {
  const { containers, next } = await fetchContainers({ ...page, sort: 'name' });
  return { items: containers, next };
}

async function readClients(page: { limit: number; cursor?: string }): Promise<NamedPage> {
  return (await api.get('/clients', { params: { query: page } })).data;
}
