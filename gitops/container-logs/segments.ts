import { readdir, readFile, rename, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { writeDurably } from '../../base/durable.ts';
import { containerLog } from '../report/container-logs.ts';

/** Where reading continues: a container's id, its stream, and the `at` and `count` of an `OutputPosition`. */
const position = z.tuple([z.string(), z.enum(['stdout', 'stderr']), z.string(), z.number()]);
export type StoredPosition = z.output<typeof position>;

/** The first line of a segment: the positions so far, and the number of the next line. */
const header = z.object({ next: z.number().int(), positions: z.array(position) });
const storedLine = containerLog
  .omit({ id: true })
  .extend({ seq: z.number().int(), position: position.optional() });
export type StoredLine = z.output<typeof storedLine>;

/** A file with lines. `first`, `last`: numbers of its lines; `from`, `to`: their earliest and latest time (milliseconds). */
export interface Segment {
  name: string;
  first: number;
  last: number;
  from: number;
  to: number;
  size: number;
}

/** The segment that gets new lines. */
export const CURRENT = 'current.ndjson';
const NO_MEMBERS = {
  ...{ requestId: null, name: null, type: null, eventName: null, requestMethod: null, requestUrl: null },
  ...{ responseStatusCode: null, message: null, permission: null, dropped: null },
};
const CLOSED = /^(\d{12})-(\d{12})-(\d{13})-(\d{13})\.ndjson$/;

interface OpenedSegments {
  /** The oldest first, without the current one. */
  readonly closed: Segment[];
  /** `null`: there is none. */
  readonly current: Segment | null;
  readonly next: number;
  readonly positions: readonly StoredPosition[];
}

/** Reads a site's folder. A last line that a kill left unfinished is cut off. */
export async function openSegments(dir: string): Promise<OpenedSegments> {
  const names = (await readdir(dir).catch(noneIfMissing)).sort();
  const closed: Segment[] = [];
  for (const name of names) {
    const [, first, last, from, to] = CLOSED.exec(name) ?? [];
    if (to === undefined) continue;
    const { size } = await stat(join(dir, name));
    closed.push({ name, first: Number(first), last: Number(last), from: Number(from), to: Number(to), size });
  }
  const newest = closed.at(-1);
  const isOpen = names.includes(CURRENT);
  const name = isOpen ? CURRENT : newest?.name;
  if (name === undefined) return { closed, current: null, next: 1, positions: [] };
  const path = join(dir, name);
  const content = await readFile(path);
  const whole = content.lastIndexOf(0x0a) + 1;
  if (whole < content.length) await truncate(path, whole);
  const { lines, next, positions } = parseSegment(content.subarray(0, whole).toString());
  const current = isOpen ? { ...segmentOf(CURRENT, lines), size: whole } : null;
  return { closed, current, next: Math.max(next, (newest?.last ?? 0) + 1), positions };
}

function noneIfMissing(error: unknown): string[] {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
  throw error;
}

/** A line as it is stored: without members that are null. */
export function lineText(line: StoredLine): string {
  return `${JSON.stringify(line, (_key, value: unknown) => (value === null ? undefined : value))}\n`;
}

/**
 * The lines of a segment's text, the number of the line that follows, and the positions that its header and its lines name.
 * With `isAsked`, only the lines whose text it accepts.
 */
export function parseSegment(text: string, isAsked: (text: string) => boolean = () => true) {
  const lines: StoredLine[] = [];
  const positions = new Map<string, StoredPosition>();
  const note = (one: StoredPosition) => {
    const key = `${one[0]} ${one[1]}`;
    positions.delete(key);
    positions.set(key, one);
  };
  let next = 1;
  for (const part of text.split('\n')) {
    const line = isAsked(part) ? parseLine(part) : null;
    if (line === null) continue;
    if ('next' in line) {
      next = Math.max(next, line.next);
      for (const one of line.positions) note(one);
    } else {
      lines.push(line);
      next = Math.max(next, line.seq + 1);
      if (line.position !== undefined) note(line.position);
    }
  }
  return { lines, next, positions: [...positions.values()] };
}

function parseLine(text: string): StoredLine | z.output<typeof header> | null {
  if (text === '') return null;
  try {
    const value: unknown = JSON.parse(text);
    const isHeader = typeof value === 'object' && value !== null && 'next' in value;
    if (isHeader) return header.safeParse(value).data ?? null;
    return storedLine.safeParse({ ...NO_MEMBERS, ...(value as object) }).data ?? null; // a non-object has no known key
  } catch {
    return null; // A disk that was full may have left part of a line within a file.
  }
}

export function segmentOf(name: string, lines: readonly StoredLine[]): Segment {
  const segment = { name, first: 0, last: 0, from: Number.MAX_SAFE_INTEGER, to: 0, size: 0 };
  for (const { seq, time } of lines) extend(segment, { seq, time });
  return segment;
}

/** Counts a line as one of the segment. */
export function extend(segment: Segment, { seq, time }: Pick<StoredLine, 'seq' | 'time'>): void {
  const at = Date.parse(time);
  if (segment.first === 0) segment.first = seq;
  segment.last = Math.max(segment.last, seq);
  segment.from = Math.min(segment.from, at);
  segment.to = Math.max(segment.to, at);
}

export const segmentHead = (next: number, positions: readonly StoredPosition[]) =>
  `${JSON.stringify({ next, positions })}\n`;

/** Gives the current segment the name by which it is found later. */
export async function closeSegment(dir: string, current: Segment): Promise<Segment> {
  const digits = (value: number, length: number) => String(value).padStart(length, '0');
  const { first, last, from, to } = current;
  const name = `${digits(first, 12)}-${digits(last, 12)}-${digits(from, 13)}-${digits(to, 13)}.ndjson`;
  await rename(join(dir, CURRENT), join(dir, name));
  return { ...current, name };
}

/**
 * Removes a segment's lines up to a time. `null`: the segment had no other lines, and is deleted. The current one
 * is kept, also without lines.
 */
export async function cutSegment(dir: string, segment: Segment, until: number): Promise<Segment | null> {
  const path = join(dir, segment.name);
  const { lines, next, positions } = parseSegment(await readFile(path, 'utf8'));
  const kept = lines.filter(({ time }) => Date.parse(time) > until);
  if (kept.length === 0 && segment.name !== CURRENT) {
    await rm(path);
    return null;
  }
  const text = segmentHead(next, positions) + kept.map(lineText).join('');
  await writeDurably(path, text);
  return { ...segmentOf(segment.name, kept), size: Buffer.byteLength(text) };
}
