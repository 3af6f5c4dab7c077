import { type Identity, readMark } from '../../../base/ownership.ts';
import { gateHolder } from '../../../sites/manifest/containers.ts';
import type { Slots } from '../../../sites/manifest/slots.ts';
import { keyOfName } from './desired.ts';
import type { ContainerInstance } from './runtime.ts';

/**
 * Records the slots of all existing containers, of any owner, so that no other container gets them. A container of an
 * older release has no recorded slot: while it runs, its endpoint counts instead. Returns the holders.
 */
export function readSlots(
  slots: Slots,
  identity: Identity,
  instances: readonly ContainerInstance[],
): Set<string> {
  const holders = new Set<string>();
  for (const { id, name, mark, slot, endpoint } of instances) {
    const { owner } = readMark(identity, mark);
    const key = owner.kind === 'ours' ? keyOfName(identity.instance, name) : null;
    const site = owner.kind === 'ours' ? owner.site : '';
    const holder = key ?? `container ${id}`;
    holders.add(holder).add(gateHolder(holder));
    if (slot !== null) {
      const { address, boundAddress, port } = slot;
      slots.found({ site, port, holder }, boundAddress);
      if (address !== boundAddress) slots.found({ site, port, holder: gateHolder(holder) }, address);
    } else if (endpoint !== null) {
      slots.found({ site, port: endpoint.port, holder }, endpoint.address);
    }
  }
  return holders;
}
