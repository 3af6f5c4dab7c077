import { contentHash } from '../../base/ownership.ts';
import type { Manifest } from '../../manifest/schema.ts';
import type { Resource, Traits } from '../contract.ts';

export const DNS = {
  target: 'dns',
  isShared: true,
  drainsOnRemoval: true,
  countedAs: 'DNS records',
} as const satisfies Traits;

/** A record as Tagyard wants it: canonical name and content, `ttl` in seconds, 1 for automatic. */
export interface RecordSpec {
  readonly name: string;
  readonly type: 'A' | 'AAAA' | 'CNAME';
  readonly content: string;
  readonly ttl: number;
  readonly proxied: boolean;
}

/** Where a zone's names lead. */
export interface DnsDestinations {
  /** Where origin and preview hostnames lead: this host's public address. */
  readonly hostAddress: string;
  /**
   * Where edge hostnames lead: an address, or a name in which `{host}` stands for the edge hostname. Unset: Cloudflare
   * proxies them itself.
   */
  readonly edgeTarget?: string | undefined;
}

/** The discard prefix: a proxied name with a worker on it has no origin of its own (Cloudflare's documentation, "originless"). */
const ORIGINLESS = '100::';
/** In place of a TTL in seconds. Where Cloudflare proxies nothing else is allowed; elsewhere it means `AUTOMATIC_TTL_SECONDS`. */
export const AUTOMATIC = 1;
export const AUTOMATIC_TTL_SECONDS = 300;

/** A site's records, pure: the edge hostname to the worker, origin and preview to the host itself. */
export function desiredRecords(
  manifest: Manifest,
  { hostAddress, edgeTarget }: DnsDestinations,
): Resource<RecordSpec>[] {
  const { edge, origin, preview } = manifest.hostnames;
  const to = (name: string, destination: string, proxied = false): RecordSpec => {
    const type = typeFor(destination);
    return { name, type, content: canonicalContent(type, destination), ttl: AUTOMATIC, proxied };
  };
  const records: RecordSpec[] = [
    edgeTarget === undefined ? to(edge, ORIGINLESS, true) : to(edge, edgeTarget.replaceAll('{host}', edge)),
    to(origin, hostAddress),
    to(preview, hostAddress),
  ];
  return records.map((spec) => ({
    target: DNS.target,
    site: manifest.site,
    key: recordKey(spec),
    hash: contentHash(spec),
    summary: [spec.name, spec.type, spec.content, ...(spec.proxied ? ['(proxied)'] : [])].join(' '),
    adopt: manifest.adopt,
    spec,
  }));
}

/** Joined, like the summary: V8 keeps a template's parts apart, with more than they hold for each. */
export function recordKey({ name, type }: { name: string; type: string }): string {
  return [name, type].join('/');
}

/** The name in a key that `recordKey` made. */
export function nameOfKey(key: string): string {
  return key.slice(0, key.lastIndexOf('/'));
}

function typeFor(destination: string): RecordSpec['type'] {
  if (destination.includes(':')) return 'AAAA';
  return /^[\d.]+$/.test(destination) ? 'A' : 'CNAME';
}

/** One text for one meaning: names in lower case without the root's dot, IPv6 as RFC 5952 writes it. */
export function canonicalRecord<Record extends { name: string; type: string; content: string }>(
  record: Record,
): Record {
  const name = record.name.toLowerCase().replace(/\.$/, '');
  return { ...record, name, content: canonicalContent(record.type, record.content) };
}

function canonicalContent(type: string, content: string): string {
  if (type === 'CNAME') return content.toLowerCase().replace(/\.$/, '');
  if (type !== 'AAAA') return content;
  return URL.parse(`http://[${content}]/`)?.hostname.slice(1, -1) ?? content;
}
