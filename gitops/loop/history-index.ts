import type { Log } from '../base/log.ts';
import type { SitesRepo } from '../sites-repo/sites-repo.ts';

/** From this number of sites on, reading one site's history is slow without an index. */
const MIN_SITES = 500;

/** Updates the index of the sites repository's history in the background, one update at a time. No pass waits for it. */
export class HistoryIndex {
  readonly #repo: Pick<SitesRepo, 'indexHistory'>;
  readonly #log: Pick<Log, 'warn'>;
  #running: Promise<void> | null = null;

  constructor(repo: Pick<SitesRepo, 'indexHistory'>, log: Pick<Log, 'warn'>) {
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
