import type { TenantRef } from '../access/tenants.ts';
import { demandTag, shortDigest } from '../view/etag.ts';
import { formatTenant, type Tenant } from './tenant-file.ts';

/** A strong validator of all that git holds of a client or organisation, its members included. */
export function tenantTag(ref: TenantRef, tenant: Tenant): string {
  return `"${shortDigest(formatTenant(ref, tenant))}"`;
}

/** Throws `precondition_failed` unless an `If-Match` names this version. A weak tag never matches. */
export function demandTenantTag(ifMatch: string | undefined, ref: TenantRef, tenant: Tenant): void {
  demandTag(ifMatch, (tag) => tag === tenantTag(ref, tenant));
}
