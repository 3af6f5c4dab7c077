import type { Log } from '../base/log.ts';
import type { SitesRepo } from '../sites-repo/sites-repo.ts';

/** From here on a site's history is slow to find without an index. */
const MANY_SITES = 500;

/** Renews the index of the sites repository's history beside the passes: none of them needs it. */
export class HistoryIndex {
  readonly #repo: Pick<SitesRepo, 'indexHistory'>;
  readonly #log: Pick<Log, 'warn'>;
  #running: Promise<void> | null = null;

  constructor(repo: Pick<SitesRepo, 'indexHistory'>, log: Pick<Log, 'warn'>) {
    this.#repo = repo;
    this.#log = log;
  }

  /** After a look at everything; `sites` is how many there are. */
  renew(sites: number): void {
    if (sites < MANY_SITES) return;
    this.#running ??= this.#repo
      .indexHistory()
      .catch((err: unknown) => this.#log.warn({ err }, 'the history could not be indexed'))
      .finally(() => {
        this.#running = null;
      });
  }

  async ended(): Promise<void> {
    await this.#running;
  }
}
