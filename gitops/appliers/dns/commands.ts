import { z } from 'zod';
import { AUTOMATIC, AUTOMATIC_TTL_SECONDS, recordKey } from './desired.ts';
import type { RecordChange } from './provider.ts';

/**
 * One record as it was observed, with the TXT values of its mark, all in zone file syntax. Its JSON is the `id` of a
 * listed record, so that an update can require that the record is unchanged. `data` is `null` if only the mark of a
 * record exists.
 */
const storedRecord = z.object({
  name: z.string(),
  type: z.string(),
  data: z.string().nullable(),
  marks: z.array(z.string()),
});
export type StoredRecord = z.infer<typeof storedRecord>;

function readId(id: string): StoredRecord {
  return storedRecord.parse(JSON.parse(id));
}

/** The name of the TXT record with the mark. It is a separate name because no TXT record may exist beside a CNAME. */
function markName(name: string, type: string): string {
  return `_tagyard-${type.toLowerCase()}.${name}`;
}

/** Reads a `markName` back; `null` for any other name. */
export function markedBy(name: string): { name: string; type: string } | null {
  const [, type, marked] = /^_tagyard-(a|aaaa|cname)\.(.+)$/.exec(name) ?? [];
  return type === undefined || marked === undefined ? null : { name: marked, type: type.toUpperCase() };
}

/** The records that a change deletes or replaces, as they were observed. */
export function displaced({ keep, surplus }: RecordChange): StoredRecord[] {
  return [...(keep === null ? [] : [keep]), ...surplus].map(readId);
}

/**
 * One change as commands of `knsupdate`. The prerequisites make the server refuse the change unless all affected
 * records and marks are still as observed. The same transaction replaces the old records.
 */
export function updateCommands(change: RecordChange): string[] {
  const old = Map.groupBy(displaced(change), ({ name, type }) => recordKey({ name: bare(name), type }));
  const lines = [...old.values()].flatMap(replaceWhole);
  const { write } = change;
  if (write === undefined) return lines;

  const { name, type, content, ttl } = write.record;
  const mark = `${markName(name, type)}.`;
  if (!old.has(recordKey(write.record))) {
    lines.push(`prereq nxrrset ${name}. ${type}`, `prereq nxrrset ${mark} TXT`);
  }
  // A server silently ignores a new CNAME beside other records, and a new record beside a CNAME (RFC 2136 3.4.2.2).
  const exists = (wanted?: string) =>
    [...old.values()].flat().some((stored) => stored.data !== null && (!wanted || stored.type === wanted));
  if (type === 'CNAME' && !exists()) lines.push(`prereq nxdomain ${name}.`);
  if (type !== 'CNAME' && !exists('CNAME')) lines.push(`prereq nxrrset ${name}. CNAME`);

  const seconds = ttl === AUTOMATIC ? AUTOMATIC_TTL_SECONDS : ttl;
  lines.push(
    `add ${name}. ${seconds} ${type} ${type === 'CNAME' ? `${content}.` : content}`,
    `add ${mark} ${AUTOMATIC_TTL_SECONDS} TXT "${write.comment}"`,
  );
  return lines;
}

/** Deletes all records of one name and type: a prerequisite must list the whole RRset (RFC 2136 2.4.2). */
function replaceWhole(set: readonly StoredRecord[]): string[] {
  const [first] = set;
  if (first === undefined) return [];
  const name = `${bare(first.name)}.`;
  const mark = markName(name, first.type);
  const data = set.flatMap((stored) => stored.data ?? []);
  return [
    ...prerequisites(name, first.type, data),
    ...prerequisites(mark, 'TXT', first.marks),
    `del ${name} ${first.type}`,
    `del ${mark} TXT`,
  ];
}

function prerequisites(name: string, type: string, data: readonly string[]): string[] {
  if (data.length === 0) return [`prereq nxrrset ${name} ${type}`];
  return data.map((value) => `prereq yxrrset ${name} ${type} ${value}`);
}

function bare(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}
