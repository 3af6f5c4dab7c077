import { hash } from 'node:crypto';
import { addAll, type Counts, countRecord } from './counts.ts';
import { isUuid, readRecord, type TrafficRecord } from './record.ts';

/** An object that was read. */
export interface ReadObject {
  readonly key: string;
  readonly size: number;
  readonly body: Buffer;
}

/**
 * `torn`: the last line, not ended, is no whole JSON value; `unreadable`: another line is none; `foreign`: JSON, but no
 * record; `misplaced`: the record's day is not that of the object.
 */
type LineFault = 'torn' | 'unreadable' | 'foreign' | 'misplaced';

/** Up to 52 records of one batch: a number holds that many bits exactly. */
interface Block {
  readonly batch: string;
  readonly block: number;
  readonly day: string;
  /** One bit for each record of the block, set if it was seen. The lowest bit is the first record's. */
  seen: number;
}

export interface SetSums {
  readonly blocks: ReadonlyMap<string, Block>;
  /** By container, minute and probe. */
  readonly minutes: ReadonlyMap<string, Sum>;
  readonly faults: readonly { readonly key: string; readonly kind: LineFault; readonly lines: number }[];
  /** Keys of objects that have records of a container whose records are deleted. */
  readonly deletedIn: readonly string[];
  readonly records: number;
  /** By container, the time of the first record of a page that got its tags (ISO 8601). */
  readonly visits: ReadonlyMap<string, string>;
  /** How many batches of these objects have a record that was counted before. */
  readonly doubledBatches: number;
}

export interface Sum {
  readonly container: string;
  /** `2026-11-23T06:22`. */
  readonly minute: string;
  readonly probe: boolean;
  readonly counts: Counts;
}

/** The id of the rows with the sums of everything, including requests for hostnames of no site. */
export const TOTAL = '00000000-0000-0000-0000-000000000000';
/** The day and the form of an object's key. */
const KEY = /^raw\/dt=(\d{4}-\d\d-\d\d)\/[^/]+\.ndjson$/;
const PER_BLOCK = 52;
const MOST_BLOCKS = 32_767;
const BITS = Array.from({ length: PER_BLOCK }, (_, bit) => 2 ** bit);

/** The day of an object's key; `null`: the edge writes no object with such a key. */
export const dayOf = (key: string): string | null => KEY.exec(key)?.[1] ?? null;

export const hasBit = (seen: number, bit: number): boolean => Math.floor(seen / (BITS[bit] ?? 1)) % 2 === 1;

/** The bits that are set in one of them or in both. */
export const eitherOf = (one: number, other: number): number =>
  BITS.reduce((sum, value, bit) => (hasBit(one, bit) || hasBit(other, bit) ? sum + value : sum), 0);

/** A UUID computed from a text, always the same one. */
export function uuidOf(text: string): string {
  return hash('sha256', text, 'hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');
}

/**
 * Sums the records of objects. A record counts once, by its batch and its index there. Omits records in `counted`, and
 * those of a container in `deleted` that are older than its time there (ISO 8601).
 */
export function sumObjects(
  objects: readonly ReadObject[],
  { counted, deleted }: { counted: ReadonlyMap<string, number>; deleted: ReadonlyMap<string, string> },
): SetSums {
  const blocks = new Map<string, Block>();
  const minutes = new Map<string, Sum>();
  const faults = new Map<string, { key: string; kind: LineFault; lines: number }>();
  const deletedIn = new Set<string>();
  const doubled = new Set<string>();
  const visits = new Map<string, string>();
  let records = 0;

  const fault = (key: string, kind: LineFault) => {
    const known = faults.get(`${kind} ${key}`) ?? { key, kind, lines: 0 };
    faults.set(`${kind} ${key}`, { ...known, lines: known.lines + 1 });
  };
  const isNew = (record: TrafficRecord, object: string, line: number, day: string) => {
    const own = isUuid(record.batch) && isIndex(record.index);
    const batch = own ? (record.batch as string) : object;
    const index = own ? (record.index as number) : line;
    const block = Math.floor(index / PER_BLOCK);
    const name = `${batch}:${block}`;
    const bit = index % PER_BLOCK;
    const known = blocks.get(name) ?? { batch, block, day, seen: 0 };
    const isFirst = !hasBit(known.seen, bit);
    if (isFirst) known.seen += BITS[bit] ?? 0;
    blocks.set(name, known);
    if (isFirst && !hasBit(counted.get(name) ?? 0, bit)) return true;
    doubled.add(`${object} ${batch}`);
    return false;
  };

  for (const { key, body } of objects) {
    const day = dayOf(key) ?? '';
    const object = uuidOf(key);
    let number = -1;
    for (const [line, isLast] of linesOf(body)) {
      number += 1;
      if (line === '') continue;
      const record = readRecord(line);
      if (record === 'torn') fault(key, isLast ? 'torn' : 'unreadable');
      else if (record === 'foreign') fault(key, 'foreign');
      else if (!record.time.startsWith(day)) fault(key, 'misplaced');
      else {
        const isDeleted = record.container !== null && record.time < (deleted.get(record.container) ?? '');
        if (isDeleted) deletedIn.add(key);
        if (!isNew(record, object, Math.min(number, PER_BLOCK * MOST_BLOCKS), day) || isDeleted) continue;
        records += 1;
        countRecord(countsOf(minutes, record), record);
        if (isVisit(record)) {
          const { container, time } = record;
          visits.set(container, [visits.get(container) ?? time, time].sort()[0] ?? time);
        }
      }
    }
  }
  return {
    blocks,
    minutes,
    faults: [...faults.values()],
    deletedIn: [...deletedIn],
    visits,
    records,
    doubledBatches: doubled.size,
  };
}

/** Whether a visitor's page got its tags: neither a probe of our own nor a bot asked, and the edge knew the page. */
function isVisit(record: TrafficRecord): record is TrafficRecord & { readonly container: string } {
  const { container, route, status, probe, bot } = record;
  return isUuid(container) && route === '/boot' && status === 200 && probe !== true && bot !== true;
}

function isIndex(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) < PER_BLOCK * MOST_BLOCKS;
}

function* linesOf(body: Buffer): Generator<[line: string, isLast: boolean]> {
  let from = 0;
  while (from < body.length) {
    const end = body.indexOf(10, from);
    if (end === -1) {
      yield [body.toString('utf8', from), true];
      return;
    }
    yield [body.toString('utf8', from, end), false];
    from = end + 1;
  }
}

function countsOf(minutes: Map<string, Sum>, { container, time, probe: probed }: TrafficRecord): Counts {
  const minute = time.slice(0, 16);
  const probe = probed === true;
  const known = isUuid(container) ? container : TOTAL;
  const name = `${known} ${minute} ${probe}`;
  let sum = minutes.get(name);
  if (sum === undefined) {
    sum = { container: known, minute, probe, counts: new Map() };
    minutes.set(name, sum);
  }
  return sum.counts;
}

/** The sums that are also kept by quarters of an hour: in some time zones, days begin amid an hour of UTC. */
const QUARTERED = ['n', 'e', 'i', 'o'];

/** The same counts, some again by the minute's quarter of the hour: `n1` in the second, to `n3` in the fourth. */
export function withQuarter({ counts, ...sum }: Sum): Sum {
  const quarter = Math.floor(Number(sum.minute.slice(14, 16)) / 15);
  const own = new Map(counts);
  for (const name of quarter === 0 ? [] : QUARTERED) {
    const count = counts.get(name);
    if (count !== undefined) own.set(`${name}${quarter}`, count);
  }
  return { ...sum, counts: own };
}

/**
 * The same sums by longer spans, each named by the first `length` letters of its minutes; and the sums of everything.
 */
export function widen(minutes: Iterable<Sum>, length: number): Sum[] {
  const wide = new Map<string, Sum>();
  for (const { container, minute, probe, counts } of minutes) {
    for (const one of new Set([container, TOTAL])) {
      const name = `${one} ${minute.slice(0, length)} ${probe}`;
      const known = wide.get(name) ?? {
        container: one,
        minute: minute.slice(0, length),
        probe,
        counts: new Map(),
      };
      addAll(known.counts, counts);
      wide.set(name, known);
    }
  }
  return [...wide.values()];
}
