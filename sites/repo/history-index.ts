import type { Log } from '../../base/log.ts';

/** From this number of sites on, reading one site's history is slow without an index. */
const MIN_SITES = 500;

/** What builds the index, or updates it. */
interface Indexed {
  indexHistory(): Promise<void>;
}

/** Updates the index of the sites repository's history in the background, one update at a time. Nothing waits for it. */
export class HistoryIndex {
  readonly #repo: Indexed;
  readonly #log: Pick<Log, 'warn'>;
  #running: Promise<void> | null = null;

  constructor(repo: Indexed, log: Pick<Log, 'warn'>) {
    this.#repo = repo;
    this.#log = log;
  }

  /** Call it after a full pass over `sites` sites. */
  update(sites: number): void {
    if (sites < MIN_SITES) return;
    this.#running ??= this.#repo
      .indexHistory()
      .catch((err: unknown) => this.#log.warn({ err }, 'the history could not be indexed'))
      .finally(() => {
        this.#running = null;
      });
  }

  /** Resolves when no update is running. */
  async ended(): Promise<void> {
    await this.#running;
  }
}
