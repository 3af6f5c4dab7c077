import { z } from 'zod';
import type { RecordChange } from './applier.ts';
import { AUTOMATIC, AUTOMATIC_TTL_SECONDS, recordKey } from './desired.ts';

/**
 * One record as it was observed, with the texts beside it that carry its mark; it is the `id` of a listed record, so
 * that a change can demand of the server that nothing has moved. Everything in the words of a zone file; `data` is
 * `null` where only the mark is left of a record.
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

/** Where the mark of a name's records of one type stands: a name of its own, since an alias bears no text beside it. */
function markName(name: string, type: string): string {
  return `_tagyard-${type.toLowerCase()}.${name}`;
}

/** The other way round; `null` for any other name. */
export function markedBy(name: string): { name: string; type: string } | null {
  const [, type, marked] = /^_tagyard-(a|aaaa|cname)\.(.+)$/.exec(name) ?? [];
  return type === undefined || marked === undefined ? null : { name: marked, type: type.toUpperCase() };
}

/** The records that a change does away with or replaces, as they were observed. */
export function displaced({ keep, surplus }: RecordChange): StoredRecord[] {
  return [...(keep === null ? [] : [keep]), ...surplus].map(readId);
}

/**
 * One change in the language of `knsupdate`, pure. The server is to carry it out only where all that it touches is still
 * as it was observed, record and mark; what is written replaces what was there in the same transaction.
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
  // A server passes over an alias beside other records, or the other way round, and answers success (RFC 2136 3.4.2.2).
  const bears = (wanted?: string) =>
    [...old.values()].flat().some((stored) => stored.data !== null && (!wanted || stored.type === wanted));
  if (type === 'CNAME' && !bears()) lines.push(`prereq nxdomain ${name}.`);
  if (type !== 'CNAME' && !bears('CNAME')) lines.push(`prereq nxrrset ${name}. CNAME`);

  const seconds = ttl === AUTOMATIC ? AUTOMATIC_TTL_SECONDS : ttl;
  lines.push(
    `add ${name}. ${seconds} ${type} ${type === 'CNAME' ? `${content}.` : content}`,
    `add ${mark} ${AUTOMATIC_TTL_SECONDS} TXT "${write.comment}"`,
  );
  return lines;
}

/** All records of one name and type, which share their marks: a prerequisite speaks of the whole set (RFC 2136 2.4.2). */
function replaceWhole(set: readonly StoredRecord[]): string[] {
  const [first] = set;
  if (first === undefined) return [];
  const name = `${bare(first.name)}.`;
  const mark = markName(name, first.type);
  const data = set.flatMap((stored) => stored.data ?? []);
  return [
    ...as(name, first.type, data),
    ...as(mark, 'TXT', first.marks),
    `del ${name} ${first.type}`,
    `del ${mark} TXT`,
  ];
}

function as(name: string, type: string, data: readonly string[]): string[] {
  if (data.length === 0) return [`prereq nxrrset ${name} ${type}`];
  return data.map((value) => `prereq yxrrset ${name} ${type} ${value}`);
}

function bare(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}
