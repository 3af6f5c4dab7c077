import { mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { writeDurably } from '../base/durable.ts';
import { operationSchema, siteStatusSchema } from '../report/report.ts';

const stateSchema = z.object({
  version: z.literal(1),
  /** The newest revision that a pass has read. */
  revision: z.string().nullable(),
  sites: z.array(siteStatusSchema),
  operations: z.array(operationSchema),
});
export type State = z.infer<typeof stateSchema>;

/** Sites in one piece of the text. */
const PIECE = 100;

/** As `JSON.stringify` has it, in pieces: the whole of it at once would hold up everything else. */
function* jsonPieces({ sites, ...rest }: State): Generator<string> {
  yield `${JSON.stringify(rest).slice(0, -1)},"sites":[`;
  for (let start = 0; start < sites.length; start += PIECE) {
    yield (start === 0 ? '' : ',') + JSON.stringify(sites.slice(start, start + PIECE)).slice(1, -1);
  }
  yield ']}';
}

/** After a write comes a rest so many times as long: however much changes, writing takes a tenth of the time. */
const REST = 9;
const LONGEST_REST_MS = 3_000;

/**
 * The daemon's cache on disk: one file, written whole or not at all, so that a power cut leaves the one or the other.
 * With ten thousand sites that is ten megabytes: changes that come close together share a write.
 */
export class StateFile {
  readonly #path: string;
  readonly #onError: (error: unknown) => void;
  #writing: Promise<void> | null = null;
  #next: (() => State) | null = null;
  #hurry = new AbortController();

  constructor(path: string, onError: (error: unknown) => void) {
    this.#path = path;
    this.#onError = onError;
  }

  /** What an earlier process knew; `null` where it is lost or unreadable, which costs a slower pass and no more. */
  async read(): Promise<State | null> {
    try {
      return stateSchema.parse(JSON.parse(await readFile(this.#path, 'utf8')));
    } catch {
      return null;
    }
  }

  /** Writes soon; calls that come while a write or its rest is under way become one. */
  save(state: () => State): void {
    this.#next = state;
    this.#writing ??= this.#drain();
  }

  /** Resolves when all that was to be saved is written, without any rest. */
  async flush(): Promise<void> {
    this.#hurry.abort();
    await this.#writing;
    this.#hurry = new AbortController();
  }

  async #drain(): Promise<void> {
    // The caller's own changes come first: what it does in this turn belongs into the same write.
    await Promise.resolve();
    while (this.#next !== null) {
      const startedAt = performance.now();
      const state = this.#next();
      this.#next = null;
      await this.#write(jsonPieces(state)).catch(this.#onError);
      const rest = Math.min(LONGEST_REST_MS, (performance.now() - startedAt) * REST);
      await wait(rest, undefined, { signal: this.#hurry.signal, ref: false }).catch(() => undefined);
    }
    this.#writing = null;
  }

  /** Into its folder, which somebody may have cleared away meanwhile. */
  async #write(text: Iterable<string>): Promise<void> {
    await mkdir(dirname(this.#path), { recursive: true });
    await writeDurably(this.#path, text);
  }
}
