import type { X509Certificate } from 'node:crypto';
import { withinTime } from '../base/time-limit.ts';
import type { CloudflareClient } from '../clients/cloudflare.ts';
import type { DnsLookup } from '../clients/dns-lookup.ts';
import type { PartCheck } from '../report/report.ts';
import { checkPart } from './check-part.ts';
import { covers, servedCertificate } from './served-certificate.ts';

/** Connections at most: one certificate usually covers all names under one parent. */
const MAX_CONNECTIONS = 10;
/**
 * The time limit of a lookup with its connection. The check has three seconds for two of these and for the zone's name.
 */
const CONNECTION_MS = 1_000;
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
  /** Default: that of every check. */
  readonly timeoutMs?: number;
}

/**
 * Checks that each edge hostname has a certificate. Cloudflare's universal one covers only the zone and one label
 * under it (docs/facts.md, Cloudflare Workers). Never throws.
 */
export async function checkEdgeNames(
  { client, zoneId, edgePublicUrl, lookup, port, timeoutMs }: EdgeNames,
  hosts: readonly string[],
): Promise<PartCheck> {
  const name = 'edge_names';
  if (!edgePublicUrl.startsWith('https:')) {
    return { name, status: 'passed', detail: 'edge hostnames are served without TLS', fix: null };
  }
  let zoneName: string | null = null;
  return await checkPart(name, {
    fix: 'Check that Cloudflare’s API answers.',
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    async ask(signal) {
      zoneName = (await client.zone(zoneId, signal)).name;
      const zone = zoneName;
      const deep = hosts.filter((host) => !isUniversal(host, zone));
      const { port: given } = new URL(edgePublicUrl.replace('{host}', 'host.invalid'));
      const { bare, unchecked } = await inspect(deep, { lookup, port: port ?? (Number(given) || 443) });
      if (bare.length > 0) {
        const more = bare.length > MAX_LISTED ? ` and ${bare.length - MAX_LISTED} more` : '';
        throw new Error(
          `no certificate covers ${bare.slice(0, MAX_LISTED).join(', ')}${more}: the universal certificate of ${zone} covers one label under it`,
        );
      }
      const covered = `each of ${hosts.length - unchecked} edge hostnames is covered by a certificate`;
      return unchecked === 0 ? covered : `${covered}; ${unchecked} more were not checked`;
    },
    explain(error) {
      const detail = error instanceof Error ? error.message : String(error);
      // Without the zone's name nothing is known of the hostnames.
      if (zoneName === null) return { status: 'skipped', detail, fix: null };
      const fix = `Give the sites hostnames directly under ${zoneName}, or order an advanced certificate for these names.`;
      return { status: 'failed', detail, fix };
    },
  });
}

/**
 * Connects to one name under each parent, and judges all names by these certificates. Then connects to names that
 * none covers, because they may have one of their own. `unchecked`: how many names are left after ten connections.
 */
async function inspect(
  names: readonly string[],
  access: { readonly lookup: DnsLookup; readonly port: number },
): Promise<{ readonly bare: readonly string[]; readonly unchecked: number }> {
  const levels = [...Map.groupBy(names, parentOf).values()];
  const firsts = levels.flatMap(([first]) => first ?? []).slice(0, MAX_CONNECTIONS);
  const certificates = await Promise.all(firsts.map((name) => certificateOf(name, access)));
  const isCovered = (name: string) => certificates.some((one) => one !== null && covers(one, name));
  const rest = names.filter((name) => !firsts.includes(name) && !isCovered(name));
  const single = rest.slice(0, MAX_CONNECTIONS - firsts.length);
  const own = await Promise.all(single.map((name) => certificateOf(name, access)));
  const bare = [
    ...firsts.filter((name, index) => !isOf(certificates[index], name)),
    ...single.filter((name, index) => !isOf(own[index], name)),
  ];
  return { bare, unchecked: rest.length - single.length };
}

const isOf = (certificate: X509Certificate | null | undefined, name: string) =>
  certificate != null && covers(certificate, name);

/** `null`: none could be read. */
async function certificateOf(
  name: string,
  { lookup, port }: { readonly lookup: DnsLookup; readonly port: number },
): Promise<X509Certificate | null> {
  try {
    return await withinTime(CONNECTION_MS, async () => {
      const [address] = await lookup.addresses(name);
      return address === undefined ? null : await servedCertificate({ name, address, port }, CONNECTION_MS);
    });
  } catch {
    return null;
  }
}

/** Whether the zone's universal certificate covers a name. */
function isUniversal(host: string, zone: string): boolean {
  return host === zone || parentOf(host) === zone;
}

function parentOf(host: string): string {
  return host.slice(host.indexOf('.') + 1);
}
