import { appendFile, mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { writeDurably } from '../../base/durable.ts';
import { limit } from '../../base/limit.ts';
import {
  CURRENT,
  closeSegment,
  cutSegment,
  extend,
  lineText,
  openSegments,
  parseSegment,
  type Segment,
  type StoredLine,
  type StoredPosition,
  segmentHead,
  segmentOf,
} from './segments.ts';

/** Octets of a segment. A search reads a segment as a whole, and the retention deletes it as a whole. */
const SEGMENT_OCTETS = 256 * 1024;
/** The most lines in one write. */
const LINES_AT_ONCE = 500;
const DAY_MS = 86_400_000;
/** The most positions that are remembered: one for each stream of a container. */
const MOST_POSITIONS = 64;

const deletedSchema = z.object({ until: z.iso.datetime() });

/** A line that has no number yet. */
export type NewLine = Omit<StoredLine, 'seq'>;

interface SiteLogLimits {
  readonly keepDays: number;
  /** Octets of all segments. */
  readonly octets: number;
}

/** The kept lines of one site, in a folder of segments. Its operations run one after another. */
export class SiteLog {
  readonly #dir: string;
  readonly #limits: SiteLogLimits;
  readonly #exclusive = limit(1);
  readonly #positions = new Map<string, StoredPosition>();
  #closed: Segment[] = [];
  #current: Segment | null = null;
  #next = 1;
  #deletedUntil = 0;
  #opened: Promise<void> | null = null;

  constructor(dir: string, limits: SiteLogLimits) {
    this.#dir = dir;
    this.#limits = limits;
  }

  /** Where reading a container's output continues: its position in each stream. */
  async positions(id: string): Promise<readonly StoredPosition[]> {
    await this.#open();
    return [...this.#positions.values()].filter(([of]) => of === id);
  }

  /** Appends lines. Those that a deletion or the retention covers are left out. */
  async append(lines: readonly NewLine[], now: number): Promise<void> {
    await this.#open();
    await this.#exclusive(async () => {
      const oldest = Math.max(this.#deletedUntil, now - this.#limits.keepDays * DAY_MS);
      const kept = lines.filter(({ time, position }) => {
        const isKept = Date.parse(time) > oldest;
        if (!isKept && position !== undefined) this.#note(position);
        return isKept;
      });
      for (let from = 0; from < kept.length; from += LINES_AT_ONCE) {
        await this.#write(kept.slice(from, from + LINES_AT_ONCE));
      }
    });
  }

  async #write(lines: readonly NewLine[]): Promise<void> {
    if (this.#current === null) this.#current = await this.#begin();
    const added = lines.map((line, index) => ({ ...line, seq: this.#next + index }));
    const text = added.map(lineText).join('');
    await appendFile(join(this.#dir, CURRENT), text).catch((error: unknown) => {
      // Part of the text may be there. An unfinished last line is cut off when the folder is opened again.
      this.#opened = null;
      throw error;
    });
    this.#next += added.length;
    this.#current.size += Buffer.byteLength(text);
    for (const line of added) {
      extend(this.#current, line);
      if (line.position !== undefined) this.#note(line.position);
    }
    if (this.#current.size >= SEGMENT_OCTETS) await this.#rotate();
  }

  /** Removes segments that are too old, and the oldest ones beyond the size limit. */
  async prune(now: number): Promise<void> {
    await this.#open();
    await this.#exclusive(async () => {
      const oldest = now - this.#limits.keepDays * DAY_MS;
      if (this.#current !== null && this.#current.first > 0 && this.#current.from < now - DAY_MS)
        await this.#rotate();
      await this.#remove((segment) => segment.to <= oldest);
      await this.#limitSize();
    });
  }

  /** Deletes the lines up to a time. Such lines that are appended later are left out, too. */
  async deleteUntil(until: Date): Promise<void> {
    await this.#open();
    await this.#exclusive(async () => {
      const at = until.getTime();
      this.#current ??= await this.#begin();
      if (at > this.#deletedUntil) {
        await writeDurably(join(this.#dir, 'deleted.json'), JSON.stringify({ until: until.toISOString() }));
        this.#deletedUntil = at;
      }
      const kept: Segment[] = [];
      for (const segment of this.#closed) {
        const cut = segment.from > at ? segment : await cutSegment(this.#dir, segment, at);
        if (cut !== null) kept.push(cut);
      }
      this.#closed = kept;
      this.#current = await cutSegment(this.#dir, this.#current, at);
    });
  }

  /** Deletes everything. The next line that is appended makes the folder anew. */
  async forget(): Promise<void> {
    await this.#open();
    await this.#exclusive(async () => {
      await rm(this.#dir, { recursive: true, force: true });
      this.#closed = [];
      this.#current = null;
      this.#positions.clear();
      this.#deletedUntil = 0;
      this.#opened = null;
    });
  }

  /** The segments with lines, the one with the latest line first, and the number of the site's last line. */
  async segments(): Promise<{ readonly segments: readonly Segment[]; readonly last: number }> {
    await this.#open();
    const current = this.#current !== null && this.#current.first > 0 ? [this.#current] : [];
    const segments = [...this.#closed, ...current].map((one) => ({ ...one }));
    return { segments: segments.sort((a, b) => b.to - a.to), last: this.#next - 1 };
  }

  /** The lines of a segment; with `isAsked`, those whose text it accepts. None if the segment was removed meanwhile. */
  async read({ name, first }: Segment, isAsked?: (text: string) => boolean): Promise<readonly StoredLine[]> {
    let path = join(this.#dir, name);
    if (name === CURRENT && this.#current?.first !== first) {
      const moved = this.#closed.find((one) => one.first === first);
      if (moved !== undefined) path = join(this.#dir, moved.name);
    }
    const text = await readFile(path, 'utf8').catch(() => '');
    return parseSegment(text, isAsked).lines;
  }

  async #open(): Promise<void> {
    this.#opened ??= this.#exclusive(async () => {
      const { closed, current, next, positions } = await openSegments(this.#dir);
      this.#closed = closed;
      this.#current = current;
      this.#next = Math.max(next, this.#next);
      for (const one of positions) this.#note(one);
      const text = await readFile(join(this.#dir, 'deleted.json'), 'utf8').catch(() => null);
      const until = text === null ? undefined : deletedSchema.safeParse(JSON.parse(text)).data?.until;
      this.#deletedUntil = until === undefined ? 0 : Date.parse(until);
    });
    try {
      await this.#opened;
    } catch (error) {
      this.#opened = null;
      throw error;
    }
  }

  #note(position: StoredPosition): void {
    const key = `${position[0]} ${position[1]}`;
    this.#positions.delete(key);
    this.#positions.set(key, position);
    const [oldest] = this.#positions.keys();
    if (this.#positions.size > MOST_POSITIONS && oldest !== undefined) this.#positions.delete(oldest);
  }

  async #rotate(): Promise<void> {
    if (this.#current === null || this.#current.first === 0) return;
    this.#closed.push(await closeSegment(this.#dir, this.#current));
    this.#current = null;
    await this.#limitSize();
  }

  async #limitSize(): Promise<void> {
    const sum = (segments: readonly Segment[]) => segments.reduce((size, one) => size + one.size, 0);
    let size = sum(this.#closed) + (this.#current?.size ?? 0);
    // The newest segment is kept, because the positions are read from it.
    while (size > this.#limits.octets && this.#closed.length > 1) {
      const oldest = this.#closed.shift();
      if (oldest === undefined) return;
      await rm(join(this.#dir, oldest.name), { force: true });
      size -= oldest.size;
    }
  }

  async #remove(isOld: (segment: Segment) => boolean): Promise<void> {
    if (!this.#closed.some(isOld)) return;
    this.#current ??= await this.#begin();
    for (const { name } of this.#closed.filter(isOld)) await rm(join(this.#dir, name), { force: true });
    this.#closed = this.#closed.filter((segment) => !isOld(segment));
  }

  /** A segment without lines. Its header has what must outlive older lines: numbers and positions. */
  async #begin(): Promise<Segment> {
    const header = segmentHead(this.#next, [...this.#positions.values()]);
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    await writeDurably(join(this.#dir, CURRENT), header);
    return { ...segmentOf(CURRENT, []), size: Buffer.byteLength(header) };
  }
}
