import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { type Clock, systemClock } from '../../base/clock.ts';
import { writeDurably } from '../../base/durable.ts';
import { readSaved } from '../../base/json-file.ts';
import { operationSchema, siteStatusSchema } from '../report/report.ts';

const stateSchema = z.object({
  version: z.literal(1),
  /** The last revision that a pass has read. */
  revision: z.string().nullable(),
  sites: z.array(siteStatusSchema),
  operations: z.array(operationSchema),
});
export type State = z.infer<typeof stateSchema>;

const SITES_PER_CHUNK = 100;

/** The state as JSON, `sites` last, in chunks: serialising ten thousand sites at once would block the event loop. */
function* jsonChunks({ sites, ...rest }: State): Generator<string> {
  yield `${JSON.stringify(rest).slice(0, -1)},"sites":[`;
  for (let start = 0; start < sites.length; start += SITES_PER_CHUNK) {
    yield (start === 0 ? '' : ',') + JSON.stringify(sites.slice(start, start + SITES_PER_CHUNK)).slice(1, -1);
  }
  yield ']}';
}

/** A pause of nine times the duration of the write, but at most three seconds, follows each write. */
const PAUSE_FACTOR = 9;
const MAX_PAUSE_MS = 3_000;

/**
 * The daemon's state on disk, which is a cache (docs/reconciler.md, rule 12). The file is replaced atomically. With ten
 * thousand sites it has ten megabytes, so changes within a short time are written together.
 */
export class StateFile {
  readonly #path: string;
  readonly #onError: (error: unknown) => void;
  readonly #clock: Clock;
  #writing: Promise<void> | null = null;
  #next: (() => State) | null = null;
  #noPause = new AbortController();

  constructor(path: string, onError: (error: unknown) => void, clock: Clock = systemClock) {
    this.#path = path;
    this.#onError = onError;
    this.#clock = clock;
  }

  /** The state of an earlier process, as `readSaved` reads it. */
  async read(): Promise<State | null> {
    return await readSaved(this.#path, stateSchema);
  }

  /** Saves in the background. Changes during a write or the pause after it are written together. */
  save(state: () => State): void {
    this.#next = state;
    this.#writing ??= this.#drain();
  }

  /** Writes at once, without the pause, what isn't saved yet. Resolves when it is written. */
  async flush(): Promise<void> {
    this.#noPause.abort();
    await this.#writing;
    this.#noPause = new AbortController();
  }

  async #drain(): Promise<void> {
    // The caller's further synchronous changes become part of the same write.
    await Promise.resolve();
    while (this.#next !== null) {
      const startedAt = this.#clock.now();
      const state = this.#next();
      this.#next = null;
      await this.#write(jsonChunks(state)).catch(this.#onError);
      const pause = Math.min(MAX_PAUSE_MS, (this.#clock.now() - startedAt) * PAUSE_FACTOR);
      await this.#clock.sleep(pause, { signal: this.#noPause.signal, ref: false });
    }
    this.#writing = null;
  }

  /** Creates the folder again where it was deleted since the last write. */
  async #write(chunks: Iterable<string>): Promise<void> {
    await mkdir(dirname(this.#path), { recursive: true });
    await writeDurably(this.#path, chunks);
  }
}
