import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../base/clock.ts';
import { type Positions, type PrintedLine, type Printing, placed, shortId } from './printed.ts';
import { LineRate } from './rate.ts';
import { droppedLine, type KeptLines, readLine } from './read-line.ts';
import { Refusals } from './refusals.ts';
import {
  type LinePage,
  type LogQuery,
  type NewerLogs,
  type NewerQuery,
  searchNewer,
  searchPage,
} from './search.ts';
import { type NewLine, SiteLog } from './site-log.ts';

/** Milliseconds that lines wait before they are written together. */
const FLUSH_MS = 200;
/** When this many lines of a site wait, the readers of its containers wait, too. */
const MOST_WAITING = 1_000;
/** Milliseconds between two removals of what is too old. */
const PRUNE_MS = 3_600_000;
/** A container's burst of lines: its rate times this many seconds. */
const BURST_SECONDS = 10;
/** The shortest time between two lines that only count dropped ones, milliseconds. */
const COUNT_MS = 1_000;
const TOO_LONG = 'the lines were too long, or too many to be read';
const TOO_MANY = 'the container printed more lines than are kept';

export interface ContainerLogsOptions {
  /** The folder with one folder for each site. */
  readonly dir: string;
  readonly kept: KeptLines;
  readonly keepDays: number;
  /** Of one site. */
  readonly megabytes: number;
  /** Of one container. */
  readonly linesPerSecond: number;
  readonly log: { warn(fields: object, message: string): void };
  readonly clock?: Clock;
}

interface Site {
  readonly log: SiteLog;
  readonly waiting: NewLine[];
  flushing: Promise<void> | null;
  flushed: Promise<void>;
  /** Resolved and replaced when new lines are in the file. */
  arrival: PromiseWithResolvers<void>;
}

interface Printer {
  readonly rate: LineRate;
  positions: Positions;
  /** The number of lines that were dropped after the last kept one. */
  dropped: number;
  why: string;
  last: PrintedLine | null;
  /** When a line with the count was last added, by the monotonic clock; `null`: not yet. */
  countedAt: number | null;
  readonly source: Printing;
}

/** Keeps what the sites' containers print, on this host, without what may be personal (docs/logs.md). */
export class ContainerLogs {
  readonly #options: ContainerLogsOptions;
  readonly #clock: Clock;
  readonly #sites = new Map<string, Site>();
  readonly #printers = new Map<string, Printer>();
  readonly #refusals: Refusals;
  readonly #stop = new AbortController();
  #ended: Promise<void> = Promise.resolve();

  constructor(options: ContainerLogsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#refusals = new Refusals(join(options.dir, 'refusals.json'));
  }

  /** Reads the refusals that an earlier process has saved. Until `close`, removes what is too old once an hour. */
  async open(): Promise<void> {
    await mkdir(this.#options.dir, { recursive: true, mode: 0o700 });
    await this.#refusals.read();
    this.#ended = this.#keepPruning();
  }

  /** The positions after which a container's output is to be read. */
  async positions(source: Printing): Promise<Positions> {
    const { site, id } = source;
    const known = this.#printers.get(id);
    if (known !== undefined) return known.positions;
    const stored = await this.#site(site).log.positions(shortId(id));
    const positions: Positions = {};
    for (const [, stream, at, count] of stored) positions[stream] = { at, count };
    this.#printer(source, positions);
    return positions;
  }

  /** Takes lines of one container. Resolves when it can take more. */
  async write(source: Printing, lines: readonly PrintedLine[]): Promise<void> {
    const site = this.#site(source.site);
    const printer = this.#printers.get(source.id) ?? this.#printer(source, {});
    for (const line of lines) this.#take(site, source, printer, line);
    if (site.waiting.length === 0 && printer.dropped === 0) return;
    const flushed = this.#flushSoon(source.site, site);
    if (site.waiting.length >= MOST_WAITING) await flushed;
  }

  /** Call it when a container is no longer read. Its lines are in the file when this resolves. */
  async ended({ site, id }: Printing): Promise<void> {
    const printer = this.#printers.get(id);
    if (printer !== undefined) printer.countedAt = null;
    await this.#flushed(site);
    this.#printers.delete(id);
  }

  #take(site: Site, source: Printing, printer: Printer, line: PrintedLine): void {
    if (line.position !== null) printer.positions = { ...printer.positions, [line.stream]: line.position };
    const { stream, time, text, lost } = line;
    if (text === null || !printer.rate.admits(Date.parse(time))) {
      printer.dropped += lost ?? 1;
      printer.why = text === null ? TOO_LONG : TOO_MANY;
      printer.last = line;
      return;
    }
    const read = readLine(text, stream, this.#options.kept);
    if (read === null) return;
    site.waiting.push({ ...read, dropped: printer.dropped || null, ...placed(source, line) });
    printer.dropped = 0;
    this.#refusals.note(source.site, { ...read, time });
  }

  /**
   * Adds a line with the count for each container whose last lines were dropped, at most once a second.
   */
  #countDropped(name: string, site: Site): void {
    const now = this.#clock.now();
    for (const printer of this.#printers.values()) {
      const { dropped, why, last, source, countedAt } = printer;
      if (source.site !== name || dropped === 0 || last === null) continue;
      if (countedAt !== null && now - countedAt < COUNT_MS && !this.#stop.signal.aborted) {
        void this.#flushSoon(name, site);
        continue;
      }
      const position = printer.positions[last.stream] ?? null;
      site.waiting.push({ ...droppedLine(dropped, why), ...placed(source, { ...last, position }) });
      printer.dropped = 0;
      printer.countedAt = now;
    }
  }

  async page(site: string, query: LogQuery): Promise<LinePage> {
    await this.#flushed(site);
    return await searchPage(this.#site(site).log, query, this.#clock);
  }

  /** Resolves to the lines after a position as soon as there are any, or to none after `waitMs`. */
  async newer(site: string, query: NewerQuery, waitMs: number, signal: AbortSignal): Promise<NewerLogs> {
    const until = this.#clock.now() + waitMs;
    for (;;) {
      const arrival = this.#site(site).arrival.promise;
      const found = await searchNewer(this.#site(site).log, query);
      const left = until - this.#clock.now();
      const hasNews = found.logs.length > 0 || found.missed !== 0 || query.after === undefined;
      if (hasNews || found.position !== query.after || left <= 0 || signal.aborted) return found;
      const ends = AbortSignal.any([signal, this.#stop.signal]);
      await Promise.race([arrival, this.#clock.sleep(left, { signal: ends, ref: false })]);
      if (this.#stop.signal.aborted) return found;
    }
  }

  refusals() {
    return this.#refusals.list();
  }

  /** Deletes a site's lines up to a time, also those that have not been read yet. */
  async deleteUntil(site: string, until: Date): Promise<void> {
    await this.#flushed(site);
    await this.#site(site).log.deleteUntil(until);
    this.#refusals.forget(site, until.getTime());
    await this.#refusals.save();
  }

  /** Deletes all that is kept of a site that has ended. */
  async forget(site: string): Promise<void> {
    await this.#flushed(site);
    await this.#site(site).log.forget();
    this.#sites.delete(site);
    this.#refusals.forget(site);
    await this.#refusals.save();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
    await Promise.all([...this.#sites.keys()].map((site) => this.#flushed(site)));
    await this.#refusals.save();
  }

  #site(name: string): Site {
    const known = this.#sites.get(name);
    if (known !== undefined) return known;
    const { dir, keepDays, megabytes } = this.#options;
    const log = new SiteLog(join(dir, name), { keepDays, octets: megabytes * 1024 * 1024 });
    const site = {
      log,
      waiting: [],
      flushing: null,
      flushed: Promise.resolve(),
      arrival: Promise.withResolvers<void>(),
    };
    this.#sites.set(name, site);
    return site;
  }

  #printer(source: Printing, positions: Positions): Printer {
    const { linesPerSecond } = this.#options;
    const rate = new LineRate(linesPerSecond, linesPerSecond * BURST_SECONDS);
    const printer = { rate, positions, source, dropped: 0, why: '', last: null, countedAt: null };
    this.#printers.set(source.id, printer);
    return printer;
  }

  async #flushSoon(name: string, site: Site): Promise<void> {
    site.flushing ??= this.#clock
      .sleep(FLUSH_MS, { signal: this.#stop.signal, ref: false })
      .then(async () => {
        site.flushing = null;
        await this.#flush(name, site);
      });
    await site.flushing;
  }

  async #flushed(name: string): Promise<void> {
    const site = this.#sites.get(name);
    if (site !== undefined) await this.#flush(name, site);
  }

  /** Resolves when all lines that were taken so far are in the file. */
  async #flush(name: string, site: Site): Promise<void> {
    site.flushed = site.flushed.then(() => this.#append(name, site));
    await site.flushed;
  }

  async #append(name: string, site: Site): Promise<void> {
    this.#countDropped(name, site);
    const lines = site.waiting.splice(0);
    if (lines.length === 0) return;
    try {
      await site.log.append(lines, this.#clock.date().getTime());
      await this.#refusals.save();
    } catch (err) {
      this.#options.log.warn({ err, site: name, lines: lines.length }, 'lines of a container can’t be kept');
    }
    site.arrival.resolve();
    site.arrival = Promise.withResolvers();
  }

  async #keepPruning(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await this.#prune();
      } catch (err) {
        this.#options.log.warn({ err }, 'old lines of containers can’t be removed');
      }
      await this.#clock.sleep(PRUNE_MS, { signal, ref: false });
    }
  }

  async #prune(): Promise<void> {
    const now = this.#clock.date().getTime();
    for (const entry of await readdir(this.#options.dir, { withFileTypes: true })) {
      if (entry.isDirectory() && !this.#stop.signal.aborted) await this.#site(entry.name).log.prune(now);
    }
    this.#refusals.prune(now);
    await this.#refusals.save();
  }
}
