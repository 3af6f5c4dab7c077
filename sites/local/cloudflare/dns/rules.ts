import { isIPv4, isIPv6 } from 'node:net';
import { ApiError } from '../api/envelope.ts';
import type { EmulatedRecord } from './record.ts';

/** Record types that Cloudflare can proxy. */
export const PROXIABLE: readonly string[] = ['A', 'AAAA', 'CNAME'];
/** Limit of a comment in a free zone, in characters. */
const MAX_COMMENT = 100;

/** The real API appends the zone's name to a name outside the zone. */
export function absoluteName(name: string, zone: string): string {
  const lower = name.toLowerCase().replace(/\.$/, '');
  if (lower === '@' || lower === zone) return zone;
  return lower.endsWith(`.${zone}`) ? lower : `${lower}.${zone}`;
}

export function invalidRecord(code: number, message: string): ApiError {
  return new ApiError('invalidRecord', 'DNS Validation Error', [{ code, message }]);
}

/** Throws for a record that is invalid on its own. */
export function refuseInvalid({
  type,
  name,
  content,
  ttl,
  proxied,
  proxiable,
  comment = '',
}: EmulatedRecord): void {
  if (type === 'A' && !isIPv4(content)) {
    throw new ApiError('invalidAddress', 'Content for A record must be a valid IPv4 address.');
  }
  if (type === 'AAAA' && !isIPv6(content)) {
    throw new ApiError('invalidAddress', 'Content for AAAA record must be a valid IPv6 address.');
  }
  const labels = name.split('.');
  if (
    name.length > 253 ||
    labels.some((label) => !/^(\*|[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)$/.test(label))
  ) {
    throw invalidRecord(9000, 'DNS name is invalid.');
  }
  if (ttl !== 1 && (ttl < 60 || ttl > 86_400)) {
    throw invalidRecord(9021, 'TTL must be between 60 and 86400 seconds, or 1 for Automatic.');
  }
  if (proxied && !proxiable) throw invalidRecord(9004, 'This record type cannot be proxied.');
  if (comment.length > MAX_COMMENT || /[\r\n]/.test(comment)) {
    throw invalidRecord(9207, `A comment is one line of at most ${MAX_COMMENT} characters.`);
  }
}

/** Throws for a record that conflicts with `same`, the other records of its name. */
export function refuseConflict(record: EmulatedRecord, same: readonly EmulatedRecord[]): void {
  if (same.some(({ type, content }) => type === record.type && content === record.content)) {
    throw new ApiError('identicalRecord', 'An identical record already exists.');
  }
  const isAlias = record.type === 'CNAME';
  if (isAlias && same.some(({ type }) => type === 'CNAME')) {
    throw new ApiError('recordExists', 'Record already exists.');
  }
  if (same.some(({ type }) => (isAlias ? PROXIABLE.includes(type) : type === 'CNAME' && record.proxiable))) {
    throw new ApiError('hostTaken', 'An A, AAAA, or CNAME record with that host already exists.');
  }
}
