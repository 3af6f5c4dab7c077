import { isIPv4, isIPv6 } from 'node:net';
import type { EmulatedRecord } from './records.ts';
import { ApiError } from '../api/envelope.ts';

/** Types that Cloudflare can put its proxy in front of. */
export const PROXIABLE: readonly string[] = ['A', 'AAAA', 'CNAME'];
/** Characters of a comment on a free zone. */
const MAX_COMMENT = 100;

/** The real API completes a name that lies outside the zone with the zone's own name. */
export function absoluteName(name: string, zone: string): string {
  const lower = name.toLowerCase().replace(/\.$/, '');
  if (lower === '@' || lower === zone) return zone;
  return lower.endsWith(`.${zone}`) ? lower : `${lower}.${zone}`;
}

export function invalidRecord(code: number, message: string): ApiError {
  return new ApiError('invalidRecord', 'DNS Validation Error', [{ code, message }]);
}

/** Refuses a record that is wrong by itself. */
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

/** Refuses a record that can't stand beside the others of its name, `same`. */
export function refuseBesideOthers(record: EmulatedRecord, same: readonly EmulatedRecord[]): void {
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
