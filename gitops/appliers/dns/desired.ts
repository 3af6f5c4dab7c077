import { contentHash } from '../../../base/ownership.ts';
import type { Manifest } from '../../../sites/manifest/schema.ts';
import type { Resource, Traits } from '../contract.ts';

export const DNS = {
  target: 'dns',
  isShared: true,
  drainsOnRemoval: true,
  givesNames: true,
  countedAs: 'DNS records',
} as const satisfies Traits;

/** A desired record: canonical name and content, `ttl` in seconds or `AUTOMATIC`. */
export interface RecordSpec {
  readonly name: string;
  readonly type: 'A' | 'AAAA' | 'CNAME';
  readonly content: string;
  readonly ttl: number;
  readonly proxied: boolean;
}

/** What a zone's names point to. */
export interface DnsDestinations {
  /** For origin and preview hostnames: an address, or a name. */
  readonly hostAddress: string;
  /**
   * The target of edge hostnames: an address, or a name with `{host}` in place of the edge hostname. Unset: proxied by
   * Cloudflare.
   */
  readonly edgeTarget?: string | undefined;
}

/**
 * The discard prefix, for a proxied name whose worker answers without an origin ("originless" in Cloudflare's
 * documentation).
 */
const ORIGINLESS = '100::';
/**
 * The TTL "automatic", in place of one in seconds. Cloudflare allows only this TTL for proxied records; by RFC 2136 it
 * is written as `AUTOMATIC_TTL_SECONDS`.
 */
export const AUTOMATIC = 1;
export const AUTOMATIC_TTL_SECONDS = 300;

/** A site's records, pure: the edge hostname points to the worker, origin and preview to this host. */
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
    summary: recordSummary(spec),
    adopt: manifest.adopt,
    spec,
  }));
}

/**
 * The key and the summary are made by `join`: V8 keeps the parts of a template string apart, which takes more memory.
 */
export function recordKey({ name, type }: { name: string; type: string }): string {
  return [name, type].join('/');
}

/** A record as one line for people: `<name> <type> <content>`, with `(proxied)` if it is. */
export function recordSummary({
  name,
  type,
  content,
  proxied,
}: Omit<RecordSpec, 'type'> & { type: string }): string {
  return [name, type, content, ...(proxied ? ['(proxied)'] : [])].join(' ');
}

/** The name in a `recordKey`. */
export function nameOfKey(key: string): string {
  return key.slice(0, key.lastIndexOf('/'));
}

function typeFor(destination: string): RecordSpec['type'] {
  if (destination.includes(':')) return 'AAAA';
  return /^[\d.]+$/.test(destination) ? 'A' : 'CNAME';
}

/** Equal records have equal text: lower-case names without the root's dot, IPv6 addresses as in RFC 5952. */
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
