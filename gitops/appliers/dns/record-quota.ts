import type { CloudflareClient } from '../../clients/cloudflare.ts';
import { CloudflareRefusal } from '../../clients/cloudflare-errors.ts';

/** Free zones of this day or later have the smaller quota (docs/facts.md, Cloudflare API). */
const SMALLER_SINCE = Date.UTC(2024, 8, 1);
const PAID: ReadonlySet<string> = new Set(['pro', 'business', 'enterprise']);

/** How many DNS records a zone of that plan may have, pure; `null`: unknown. */
export function quotaOfPlan({
  plan,
  created_on,
}: {
  readonly plan?: { readonly legacy_id?: string | null | undefined } | null | undefined;
  readonly created_on: string;
}): number | null {
  const name = plan?.legacy_id;
  if (name === undefined || name === null) return null;
  if (PAID.has(name)) return 3_500;
  if (name !== 'free') return null;
  return Date.parse(created_on) >= SMALLER_SINCE ? 200 : 1_000;
}

/** Asks Cloudflare for the zone's quota, else for its plan. `null`: it says neither. */
export async function recordQuota(
  client: Pick<CloudflareClient, 'dnsRecordQuota' | 'zone'>,
  zoneId: string,
  signal: AbortSignal,
): Promise<number | null> {
  const known = await unlessRefused(client.dnsRecordQuota(zoneId, signal));
  if (known !== null) return known;
  const zone = await unlessRefused(client.zone(zoneId, signal));
  return zone && quotaOfPlan(zone);
}

/** `null` if Cloudflare refuses: the token may lack the permission, or an older API may lack the path. */
async function unlessRefused<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof CloudflareRefusal) return null;
    throw error;
  }
}
