import { addressOf } from '../../client/address.ts';
import type { KubernetesClient } from '../../client/contract.ts';
import type { Kind, KubernetesObject, ObjectAddress } from '../../client/kinds.ts';
import { resourceKey } from './object-spec.ts';

/** From this many missing objects of one kind and namespace on, they are listed instead of read one by one. */
const LIST_FROM = 4;

/**
 * Others' objects at these addresses, by key. The watched copies don't have them, because they lack our labels. The
 * namespaces of the addresses must exist.
 */
export async function strangersAt(
  client: KubernetesClient,
  missing: readonly ObjectAddress[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, KubernetesObject>> {
  const groups = Map.groupBy(missing, ({ kind, namespace }) => `${namespace ?? ''}/${kind}`);
  const read = async (addresses: readonly ObjectAddress[]): Promise<readonly KubernetesObject[]> => {
    const [first] = addresses;
    if (first === undefined) return [];
    if (addresses.length < LIST_FROM || first.namespace === null) {
      const found = await Promise.all(addresses.map((address) => client.get(address, signal)));
      return found.filter((object) => object !== null);
    }
    const { kind, namespace } = first;
    return await listed(client, { kind, namespace }, signal);
  };
  const wanted = new Set(missing.map(resourceKey));
  const found = (await Promise.all([...groups.values()].map(read))).flat();
  const keyed = found.map((object) => [resourceKey(addressOf(object)), object] as const);
  return new Map(keyed.filter(([key]) => wanted.has(key)));
}

async function listed(
  client: KubernetesClient,
  { kind, namespace }: { kind: Kind; namespace: string },
  signal: AbortSignal,
): Promise<readonly KubernetesObject[]> {
  const { items } = await client.list({ kind, namespace, metadataOnly: true }, signal);
  return items.map((item) => ({ ...item, kind }));
}
