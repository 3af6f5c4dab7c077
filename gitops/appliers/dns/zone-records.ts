import type { ZoneRecord } from '../../clients/rfc2136.ts';
import { markedBy, type StoredRecord } from './commands.ts';
import { AUTOMATIC, AUTOMATIC_TTL_SECONDS, recordKey } from './desired.ts';
import type { ListedRecord } from './observed.ts';

/** Types of records that DNSSEC signing adds. Such a record doesn't mean that others use the name. */
const SIGNER_TYPES = new Set(['RRSIG', 'NSEC', 'NSEC3', 'NSEC3PARAM', 'DNSKEY', 'CDS', 'CDNSKEY']);

/**
 * The records of a transferred zone with their marks, pure. A mark without a record is listed as a record without
 * content.
 */
export function listedRecords(transferred: readonly ZoneRecord[], zone: string): ListedRecord[] {
  const marks = new Map<string, StoredRecord>();
  const records = transferred.filter(({ name, type, data }) => {
    const of = type === 'TXT' ? markedBy(name.toLowerCase()) : null;
    if (of === null) return !SIGNER_TYPES.has(type) && !(type === 'NS' && name.toLowerCase() === `${zone}.`);
    const key = recordKey(of);
    marks.set(key, { ...of, data: null, marks: [...(marks.get(key)?.marks ?? []), data] });
    return false;
  });
  const marked = new Set<string>();
  const listed = records.map(({ name, type, data, ttl }) => {
    const key = recordKey({ name: name.toLowerCase(), type });
    marked.add(key);
    return list({ name, type, data, marks: marks.get(key)?.marks ?? [] }, ttl);
  });
  const orphans = [...marks].filter(([key]) => !marked.has(key));
  return [...listed, ...orphans.map(([, stored]) => list(stored, AUTOMATIC_TTL_SECONDS))];
}

function list(stored: StoredRecord, ttl: number): ListedRecord {
  const { name, type, data, marks } = stored;
  return {
    id: JSON.stringify(stored),
    name,
    type,
    content: data ?? '',
    ttl: ttl === AUTOMATIC_TTL_SECONDS ? AUTOMATIC : ttl,
    proxied: false,
    // A mark of ours is one TXT value. Several are joined to a text that is no mark.
    comment: marks.length === 0 ? null : marks.map(unquote).join(' '),
  };
}

/** A mark contains no escaped character. A text with an escaped character is foreign and is returned unchanged. */
function unquote(text: string): string {
  return /^"([^"\\]*)"$/.exec(text)?.[1] ?? text;
}
