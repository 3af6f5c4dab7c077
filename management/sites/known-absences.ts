import type { Absence } from '../../sites/repo/absences.ts';
import type { SitesRepo } from '../../sites/repo/sites-repo.ts';

/** Caches, for one revision, why sites are missing, because missing sites are checked every few seconds. */
export class KnownAbsences {
  readonly #repo: Pick<SitesRepo, 'absences'>;
  #revision = '';
  #bySite: ReadonlyMap<string, Absence> = new Map();

  constructor(repo: Pick<SitesRepo, 'absences'>) {
    this.#repo = repo;
  }

  async at(revision: string, sites: readonly string[]): Promise<ReadonlyMap<string, Absence>> {
    const known = this.#revision === revision ? this.#bySite : new Map<string, Absence>();
    const unknown = sites.filter((site) => !known.has(site));
    const found = await this.#repo.absences(unknown, revision);
    this.#bySite = new Map([...known, ...found]);
    this.#revision = revision;
    return this.#bySite;
  }
}
