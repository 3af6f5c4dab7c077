import { joinPolicies, type PolicyScript, policyProblem } from '../../sites/manifest/policy/policy-script.ts';
import type { SitesRepo } from '../../sites/repo/sites-repo.ts';
import type { DesiredSite } from './desired-state.ts';

const INSTANCE = 'policy.js';
const fileOf = (client: string) => `clients/${client}.policy.js`;

/** A file's text, or why it can't be used. */
type Script = { readonly text: string } | { readonly problem: string };
/** What applies to the sites of one client; `null`: nothing. */
type Applied = { readonly policy: PolicyScript } | { readonly problem: string } | null;

/** The policy scripts of one revision after another. Unchanged files and sites are the same objects as before. */
export class Policies {
  readonly #repo: Pick<SitesRepo, 'policies' | 'texts'>;
  /** By blob. */
  #scripts = new Map<string, Script>();
  /** A site with its policy, by the site as it was read. */
  readonly #sites = new WeakMap<DesiredSite, { readonly applied: Applied; readonly site: DesiredSite }>();
  /** By the blobs of the two scripts, so that equal policies are one object. */
  #applied = new Map<string, Applied>();
  #before: ReadonlyMap<string, Applied> = new Map();

  constructor(repo: Pick<SitesRepo, 'policies' | 'texts'>) {
    this.#repo = repo;
  }

  /** Returns a function that adds to a site the revision's policy scripts of its instance and its client. */
  async at(revision: string): Promise<(site: DesiredSite) => DesiredSite> {
    const blobs = await this.#repo.policies(revision);
    const scripts = new Map<string, Script>();
    const unread = blobs.filter(({ blob }) => !this.#scripts.has(blob));
    for await (const files of this.#repo.texts(unread)) {
      for (const { blob, path, text } of files) scripts.set(blob, readScript(path, text));
    }
    for (const { blob } of blobs) {
      const known = this.#scripts.get(blob);
      if (known !== undefined) scripts.set(blob, known);
    }
    this.#scripts = scripts;
    this.#before = this.#applied;
    this.#applied = new Map();
    const blobOf = new Map(blobs.map(({ site: path, blob }) => [path, blob]));
    return (site) => {
      const client = site.manifest?.client;
      if (client === undefined) return site;
      const own = [blobOf.get(INSTANCE), blobOf.get(fileOf(client))];
      return this.#withPolicy(site, this.#join(own, scripts));
    };
  }

  #join(blobs: readonly (string | undefined)[], scripts: ReadonlyMap<string, Script>): Applied {
    const key = blobs.map((blob) => blob ?? '').join(' ');
    const known = this.#applied.get(key) ?? this.#before.get(key);
    if (known !== undefined) {
      this.#applied.set(key, known);
      return known;
    }
    const given = blobs.flatMap((blob) => scripts.get(blob ?? '') ?? []);
    const broken = given.find((script) => 'problem' in script);
    const policy = joinPolicies(given.map((script) => ('text' in script ? script.text : undefined)));
    const applied = broken !== undefined ? broken : policy === null ? null : { policy };
    this.#applied.set(key, applied);
    return applied;
  }

  #withPolicy(site: DesiredSite, applied: Applied): DesiredSite {
    const known = this.#sites.get(site);
    if (known !== undefined && known.applied === applied) return known.site;
    const { manifest } = site;
    if (manifest === null || (applied === null && manifest.policy === undefined)) return site;
    const { policy: _, ...rest } = manifest;
    const result =
      applied !== null && 'problem' in applied
        ? unusable(site, applied.problem)
        : { ...site, manifest: applied === null ? rest : { ...rest, policy: applied.policy } };
    this.#sites.set(site, { applied, site: result });
    return result;
  }
}

/**
 * A site whose policy can't be used isn't changed on the host. A tombstone needs no policy: its site is still removed.
 */
function unusable(site: DesiredSite, message: string): DesiredSite {
  if (site.manifest?.state === 'absent') return site;
  return { ...site, manifest: null, stalled: site.stalled ?? { reason: 'InvalidManifest', message } };
}

function readScript(path: string, text: string): Script {
  const problem = policyProblem(text);
  if (problem === null) return { text };
  const line = problem.line === null ? '' : `:${problem.line}`;
  return { problem: `${path}${line}: ${problem.message}` };
}
