import type { AddressRules } from '../clients/public-address.ts';
import type { Settings } from '../context/context.ts';

/** Which addresses the tenants of this installation may name. */
export function addressRules({
  allowLoopback,
  edgeDomain,
  originDomain,
  platformDomains,
}: Pick<Settings, 'allowLoopback' | 'edgeDomain' | 'originDomain' | 'platformDomains'>): AddressRules {
  return { allowLoopback, ownZones: [edgeDomain, originDomain, ...platformDomains] };
}
