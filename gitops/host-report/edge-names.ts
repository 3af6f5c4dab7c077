import type { X509Certificate } from 'node:crypto';
import { withinTime } from '../../base/time-limit.ts';
import type { CloudflareClient } from '../clients/cloudflare.ts';
import type { DnsLookup } from '../clients/dns-lookup.ts';
import { checkPart, NotChecked } from '../report/check-part.ts';
import type { PartCheck } from '../report/report.ts';
import { covers, NoCertificate, servedCertificate } from './served-certificate.ts';

/** Connections at most: one certificate usually covers all names under one parent. */
const MAX_CONNECTIONS = 10;
/**
 * The time limit of a lookup with its connection. The check has three seconds for the zone's name and two such rounds.
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
  return await checkPart(name, {
    fix: 'silent',
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    async ask(signal, fault) {
      const { name: zone } = await client.zone(zoneId, signal);
      const deep = hosts.filter((host) => !isUniversal(host, zone));
      const { port: given } = new URL(edgePublicUrl.replace('{host}', 'host.invalid'));
      const { bare, unchecked, why } = await inspect(deep, { lookup, port: port ?? (Number(given) || 443) });
      if (bare.length > 0) {
        const more = bare.length > MAX_LISTED ? ` and ${bare.length - MAX_LISTED} more` : '';
        throw fault(
          `no certificate covers ${bare.slice(0, MAX_LISTED).join(', ')}${more}: the universal certificate of ${zone} covers one label under it`,
          'bare',
        );
      }
      const reason = why === null ? '' : ` (${why})`;
      // The names that the universal certificate covers are no proof for deeper ones.
      if (unchecked > 0 && unchecked === deep.length) {
        throw new NotChecked(`no edge hostname deeper than one label under ${zone} was checked${reason}`);
      }
      const covered = `each of ${hosts.length - unchecked} edge hostnames is covered by a certificate`;
      return unchecked === 0 ? covered : `${covered}; ${unchecked} more were not checked${reason}`;
    },
    // Without an answer nothing is known of the hostnames.
    explain: (error) => ({
      status: 'skipped',
      detail: error instanceof Error ? error.message : String(error),
      fix: null,
    }),
  });
}

/** What is known of one name. */
interface Answer {
  readonly name: string;
  /** `null`: none is served. */
  readonly certificate: X509Certificate | null;
  /** Why it isn't known which certificate is served; `null`: it is known. */
  readonly problem: string | null;
}

/**
 * Connects to one name under each parent, and judges the others there by its certificate. Then connects to names that
 * the certificate doesn't cover: they may have their own. `unchecked`: how many names didn't answer, or are left after
 * ten connections. `why`: what was wrong with the first one that didn't answer.
 */
async function inspect(
  names: readonly string[],
  access: { readonly lookup: DnsLookup; readonly port: number },
): Promise<{ readonly bare: readonly string[]; readonly unchecked: number; readonly why: string | null }> {
  const levels = [...Map.groupBy(names, parentOf).values()];
  const firsts = levels.flatMap(([first]) => first ?? []).slice(0, MAX_CONNECTIONS);
  const answers = await Promise.all(firsts.map((name) => ask(name, access)));
  const isCovered = (name: string) =>
    answers.some(({ certificate }) => certificate !== null && covers(certificate, name));
  const rest = names.filter((name) => !firsts.includes(name) && !isCovered(name));
  const single = rest.slice(0, MAX_CONNECTIONS - firsts.length);
  const all = [...answers, ...(await Promise.all(single.map((name) => ask(name, access))))];
  const silent = all.filter(({ name, problem }) => problem !== null && !isCovered(name));
  const bare = all.filter(
    ({ name, certificate, problem }) =>
      problem === null && (certificate === null || !covers(certificate, name)),
  );
  const [first] = silent;
  return {
    bare: bare.map(({ name }) => name),
    unchecked: silent.length + rest.length - single.length,
    why: first === undefined ? null : `${first.name}: ${first.problem}`,
  };
}

async function ask(
  name: string,
  { lookup, port }: { readonly lookup: DnsLookup; readonly port: number },
): Promise<Answer> {
  const unknown = (problem: string) => ({ name, certificate: null, problem });
  try {
    return await withinTime(CONNECTION_MS, async () => {
      const [address] = await lookup.addresses(name);
      if (address === undefined) return unknown('it has no address');
      const certificate = await servedCertificate({ name, address, port }, CONNECTION_MS);
      return { name, certificate, problem: null };
    });
  } catch (error) {
    if (isRefusedHandshake(error)) return { name, certificate: null, problem: null };
    return unknown(error instanceof Error ? error.message : String(error));
  }
}

/**
 * Whether the other end answered by TLS that it has no certificate for the name. Other errors of TLS, such as that of a
 * port without TLS, don't say that.
 */
function isRefusedHandshake(error: unknown): boolean {
  return (
    error instanceof NoCertificate ||
    // The beginning of the code differs between versions of OpenSSL.
    (error instanceof Error &&
      'code' in error &&
      /(?:HANDSHAKE_FAILURE|UNRECOGNIZED_NAME)$/.test(String(error.code)))
  );
}

/** Whether the zone's universal certificate covers a name. */
function isUniversal(host: string, zone: string): boolean {
  return host === zone || parentOf(host) === zone;
}

function parentOf(host: string): string {
  return host.slice(host.indexOf('.') + 1);
}
