import { withinTime } from '../base/time-limit.ts';
import type { CloudflareClient } from '../clients/cloudflare.ts';
import type { DnsLookup } from '../clients/dns-lookup.ts';
import type { PartCheck } from '../report/report.ts';
import { readServedCertificate } from './served-certificate.ts';

const TIMEOUT_MS = 3_000;
/** Connections at most: one certificate usually covers all names of a level. */
const MAX_CHECKED = 10;
/** Names that a message lists. */
const MAX_LISTED = 5;

interface EdgeNames {
  readonly client: Pick<CloudflareClient, 'zone'>;
  readonly zoneId: string;
  /** `https://{host}`, see EDGE_PUBLIC_URL. */
  readonly edgePublicUrl: string;
  readonly lookup: DnsLookup;
  /** Default: that of `edgePublicUrl`. */
  readonly port?: number;
}

/**
 * Whether the edge hostnames have a certificate where Cloudflare's universal one doesn't cover them: it covers the zone
 * and one label under it (docs/facts.md, Cloudflare Workers). Never throws.
 */
export async function checkEdgeNames(
  { client, zoneId, edgePublicUrl, lookup, port }: EdgeNames,
  hosts: readonly string[],
): Promise<PartCheck> {
  const name = 'edge_names';
  const answer = (status: PartCheck['status'], detail: string, fix: string | null = null) => ({
    name,
    status,
    detail,
    fix,
  });
  if (!edgePublicUrl.startsWith('https:')) return answer('passed', 'edge hostnames are served without TLS');
  try {
    const zone = await withinTime(TIMEOUT_MS, (signal) => client.zone(zoneId, signal));
    const deep = hosts.filter((host) => !isCovered(host, zone.name));
    const { port: given } = new URL(edgePublicUrl.replace('{host}', 'host.invalid'));
    const checked = await Promise.all(
      deep.slice(0, MAX_CHECKED).map(async (host) => {
        const [address] = await lookup.addresses(host).catch(() => []);
        if (address === undefined) return { name: host, covers: false };
        return await readServedCertificate(
          { name: host, address, port: port ?? (Number(given) || 443) },
          TIMEOUT_MS,
        );
      }),
    );
    const bare = checked.filter(({ covers }) => !covers).map((one) => one.name);
    if (bare.length === 0) {
      return answer('passed', `each of ${hosts.length} edge hostnames is covered by a certificate`);
    }
    const more = bare.length > MAX_LISTED ? ` and ${bare.length - MAX_LISTED} more` : '';
    return answer(
      'failed',
      `no certificate covers ${bare.slice(0, MAX_LISTED).join(', ')}${more}: the universal certificate of ${zone.name} covers one label under it`,
      `Name the sites directly under ${zone.name}, or order an advanced certificate for the names.`,
    );
  } catch (error) {
    return answer('skipped', error instanceof Error ? error.message : String(error));
  }
}

function isCovered(host: string, zone: string): boolean {
  return host === zone || host.slice(host.indexOf('.') + 1) === zone;
}
