import type { ZoneRecord } from '../../clients/rfc2136.ts';
import { markedBy, type StoredRecord } from './commands.ts';
import { AUTOMATIC, AUTOMATIC_TTL_SECONDS, recordKey } from './desired.ts';
import type { ListedRecord } from './observed.ts';

/** What keeps a zone itself, and what a signer adds: nobody's claim to a name. */
const UPKEEP = new Set(['RRSIG', 'NSEC', 'NSEC3', 'NSEC3PARAM', 'DNSKEY', 'CDS', 'CDNSKEY']);

/** A transferred zone as records with their marks, pure. A mark without its record is listed as one without content. */
export function listedRecords(transferred: readonly ZoneRecord[], zone: string): ListedRecord[] {
  const marks = new Map<string, StoredRecord>();
  const records = transferred.filter(({ name, type, data }) => {
    const of = type === 'TXT' ? markedBy(name.toLowerCase()) : null;
    if (of === null) return !UPKEEP.has(type) && !(type === 'NS' && name.toLowerCase() === `${zone}.`);
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
    // More than one text is no mark of ours.
    comment: marks.length === 0 ? null : marks.map(unquote).join(' '),
  };
}

/** A mark has nothing to escape; what has is somebody else's text, and stays as it is. */
function unquote(text: string): string {
  return /^"([^"\\]*)"$/.exec(text)?.[1] ?? text;
}
