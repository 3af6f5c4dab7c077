import { request } from 'undici';
import { parse } from 'yaml';
import { z } from 'zod';
import type { ShownSite } from '../../gitops/report/report.ts';
import { eventually } from '../support/eventually.ts';
import type { Effect } from './actions.ts';
import { type GitView, isInGit, textInForce, viewGit } from './git-view.ts';
import { hostnamesOf } from './manifests.ts';
import { disagreement } from './members.ts';
import { SITES, type Step } from './steps.ts';
import { Violation } from './violation.ts';
import type { World } from './world.ts';

const ANSWER_MS = 2000;
/** How many times to ask a part that refuses, or that is silent while the machine stalls. */
const ATTEMPTS = 5;
const SETTLE_MS = 60_000;
/** For this long, names may answer as before: the edge caches what KV says, and the proxy takes time to reload. */
const TRUTH_MS = 15_000;

/** With these reasons, a site may wait for something that no step provides. */
const WAITING: ReadonlySet<ShownSite['reason']> = new Set([
  'Retrying',
  'Failed',
  'ObserveFailed',
  'InvalidManifest',
  'UnsupportedVersion',
  'UndecryptableConfig',
  'NameTaken',
  'Conflict',
  'Blocked',
  'RepairLoop',
  'SourceUnavailable',
]);

const named = z.object({
  hostnames: z.object({ edge: z.string() }),
  customDomains: z.array(z.string()).default([]),
});

/** The invariants of an instance, checked after each step. It remembers what was true before the step. */
export class Checks {
  readonly #world: World;
  readonly #hostnames = SITES.flatMap(hostnamesOf);
  #view: GitView | null = null;
  /** Sites that were ready after some step, and whose removal nothing has permitted since. */
  #standing = new Set<string>();
  /** By hostname: the ready site that had it after the last step. */
  #holders = new Map<string, string>();
  /** Sites whose objects were changed from outside since they were ready. */
  readonly #drifted = new Set<string>();
  /** Sites whose containers ended with the provisioner since they were ready. */
  readonly #ended = new Set<string>();
  #nonce = 0;
  /** The number of the generator’s sites that were ready after the last step. */
  ready = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Call it before the first step. */
  async begin(): Promise<void> {
    this.#view = await viewGit(this.#world.repository);
    await this.#remember();
  }

  async after(step: Step, { drifted, restarted = false, approved = false, restore }: Effect): Promise<void> {
    if (drifted !== undefined) this.#drifted.add(drifted);
    if (restarted) for (const site of this.#standing) this.#ended.add(site);
    await this.#answer();
    if (restore !== undefined) {
      await this.#settleWithoutGit();
      await this.#removal();
      await this.#truth();
      await restore();
    }
    await this.#settle();
    const before = this.#view;
    const after = await viewGit(this.#world.repository);
    this.#view = after;
    if (before !== null) await this.#permitted(step, { before, after, approved });
    await this.#removal();
    await this.#tenants(step.kind === 'history');
    await this.#truth();
    await this.#answer();
    await this.#remember();
  }

  /** Every part answers in time. */
  async #answer(): Promise<void> {
    const { management, provisioner, edge, demo } = this.#world.run;
    const host = `acme.tagyard.localhost:${new URL(edge.url).port}`;
    const asked: readonly (readonly [string, string, Record<string, string>])[] = [
      [
        'management',
        `${management.url}/server-containers?limit=1`,
        { authorization: `Bearer ${demo.token}` },
      ],
      ['provisioner', `${provisioner.url}/sites`, { 'x-secret': provisioner.secret }],
      ['edge', `${edge.url}/healthy`, { host }],
    ];
    await Promise.all(
      asked.map(async ([part, url, headers]) => {
        for (let attempt = 1; ; attempt += 1) {
          const signal = AbortSignal.timeout(ANSWER_MS);
          const { value: problem, hasStalled } = await this.#world.control.beside(() =>
            request(url, { headers, signal })
              .then(async ({ body, statusCode }) => {
                const text = await body.text();
                const isFault = statusCode >= 500 && !(part === 'edge' && statusCode > 500);
                return isFault ? `status ${statusCode}: ${text.slice(0, 300)}` : null;
              })
              .catch((error: unknown) => String(error)),
          );
          if (problem === null) return;
          if (signal.aborted && !hasStalled)
            throw new Violation('answers', `${part} did not answer within ${ANSWER_MS / 1000} s`);
          if (attempt === ATTEMPTS)
            throw new Violation('answers', `${part}, asked ${ATTEMPTS} times: ${problem}`);
        }
      }),
    );
  }

  /** Waits until the newest revision is applied, as far as it can be. */
  async #settle(): Promise<void> {
    const { call, repository, statuses, plan } = this.#world;
    await call.provisioner('POST', '/sync');
    await eventually(
      async () => {
        const { revision, sites, problem } = await statuses();
        const { revision: planned, changes, blocked } = await plan();
        // A rewritten history that waits for an approval keeps the old revision: docs/reconciler.md, rule 4.
        const isHeld = blocked.some(({ reason }) => reason === 'history_rewritten');
        const head = await repository.head();
        if (planned !== head || (revision !== head && !isHeld)) {
          throw new Error(problem ?? 'an older revision is applied');
        }
        const active = sites.find(({ reason }) => reason === 'Progressing' || reason === 'Removing');
        if (active !== undefined) throw new Error(`${active.site} is ${active.reason}: ${active.message}`);
        const reasons = new Map(sites.map(({ site, reason }) => [site, reason]));
        const open = changes.find(
          ({ site, held }) => held.length === 0 && !WAITING.has(reasons.get(site) ?? 'Progressing'),
        );
        if (open !== undefined)
          throw new Error(`${open.site} is ${reasons.get(open.site)}: ${JSON.stringify(open)}`);
      },
      { timeoutMs: SETTLE_MS, intervalMs: 200 },
    ).catch((error: unknown) => {
      throw new Violation('truth', `not settled after ${SETTLE_MS / 1000} s: ${String(error)}`);
    });
  }

  async #settleWithoutGit(): Promise<void> {
    const { call, statuses } = this.#world;
    await call.provisioner('POST', '/sync');
    await eventually(
      async () => {
        const { problem, sites } = await statuses();
        if (problem === null && sites.some(({ ready, reason }) => ready && reason === 'Ready')) {
          throw new Error('the branch is gone, and sites are Ready');
        }
      },
      { timeoutMs: SETTLE_MS, intervalMs: 100 },
    ).catch((error: unknown) => {
      throw new Violation('truth', String(error));
    });
  }

  /** Forgets the sites that may be removed now. */
  async #permitted(
    step: Step,
    { before, after, approved }: { before: GitView; after: GitView; approved: boolean },
  ): Promise<void> {
    const { repository } = this.#world;
    for (const site of this.#standing) {
      const isKept = await isInGit(repository, { before, after, site });
      // A site that a rewritten history lacks is not removed (docs/reconciler.md, rule 4).
      const isLost =
        step.kind === 'history' && ['reset', 'forget'].includes(step.how) && !(await this.#isAtHead(site));
      const hasFile = after.tree.some(({ path, mode }) => path === `${site}.yaml` && mode.startsWith('100'));
      if ((!isKept && !isLost) || (approved && !hasFile)) this.#standing.delete(site);
    }
  }

  async #isAtHead(site: string): Promise<boolean> {
    return this.#view?.tree.some(({ path }) => path === `${site}.yaml`) ?? false;
  }

  /** Invariant `removal`: host, KV and DNS have something of each site that git still names. */
  async #removal(): Promise<void> {
    for (const site of this.#standing) {
      if (this.#drifted.has(site)) continue;
      const { records, keys } = await this.#world.marked(site);
      const containers = this.#world.processes().filter((one) => one.site === site);
      const have = {
        dns: records.length,
        kv: keys.length,
        // Child processes end with the provisioner. It starts none for a site whose changes are stopped, such as by a
        // freeze; `#settle` makes sure that it starts those of all sites that wait for nothing.
        ...(this.#ended.has(site) ? {} : { containers: containers.length }),
      };
      const gone = Object.entries(have).filter(([, count]) => count === 0);
      if (gone.length > 0)
        throw new Violation('removal', `${site} has no ${gone.map(([what]) => what).join(', ')}`);
    }
  }

  /** Invariant `tenants`: only its own site answers under a hostname, at the edge and at the proxy. */
  async #tenants(isRewritten: boolean): Promise<void> {
    const answers = await this.#ask();
    const { repository } = this.#world;
    for (const { hostname, sites } of answers) {
      const holder = this.#holders.get(hostname);
      if (isRewritten || holder === undefined || !this.#standing.has(holder) || this.#view === null) continue;
      const text = await textInForce(repository, this.#view, holder);
      if (text?.includes(hostname) !== true) continue;
      const other = sites.find((site) => site !== holder);
      if (other !== undefined)
        throw new Violation('tenants', `${hostname} belongs to ${holder}, and ${other} answers`);
    }
  }

  /** Sends a marked hit to every hostname, and finds it in the processes that have received it. */
  async #ask(
    hostnames: readonly string[] = this.#hostnames,
  ): Promise<{ hostname: string; sites: string[] }[]> {
    const { call, processes } = this.#world;
    const hits = hostnames.map((hostname) => {
      this.#nonce += 1;
      return { hostname, nonce: `fuzz-hit-${this.#nonce}-` };
    });
    await Promise.all(
      hits.flatMap(({ hostname, nonce }) =>
        [call.edge, call.proxy].map((ask) =>
          ask(hostname, 'GET', `/g/collect?v=2&tid=G-FUZZ&nonce=${nonce}`).catch(() => null),
        ),
      ),
    );
    const received = await Promise.all(
      processes().map(async ({ site, url }) => ({
        site,
        text: await request(`${url}/tagyard-demo/events`)
          .then(({ body }) => body.text())
          .catch(() => ''),
      })),
    );
    return hits.map(({ hostname, nonce }) => ({
      hostname,
      sites: [...new Set(received.filter(({ text }) => text.includes(nonce)).map(({ site }) => site))],
    }));
  }

  /** Invariant `truth`: every site that is Ready answers under its names. */
  async #truth(): Promise<void> {
    await eventually(
      async () => {
        const { sites } = await this.#world.statuses();
        const ready = sites.filter((one) => one.reason === 'Ready' && this.#isOurs(one.site));
        for (const { site, state } of ready) {
          const names = await this.#namesOf(site);
          if (state?.name === 'off') {
            const { status } = await this.#world.call.edge(names[0] ?? '', 'GET', '/boot');
            if (status !== 403) throw new Error(`${site} is switched off, and the edge answers ${status}`);
            continue;
          }
          if (state?.name !== 'serving' && state?.name !== 'paused')
            throw new Error(`${site} is Ready, and its state is ${state?.name}`);
          const answers = await this.#ask(names);
          const silent = answers.find((answer) => !answer.sites.includes(site));
          if (silent !== undefined)
            throw new Error(`${site} is Ready, and ${silent.hostname} does not reach it`);
          const { records } = await this.#world.marked(site);
          if (!records.some(({ name }) => name === names[0]))
            throw new Error(`${site} is Ready, without DNS`);
        }
        const told = await disagreement(this.#world);
        if (told !== null) throw new Error(`the demo's container: ${told}`);
      },
      { timeoutMs: TRUTH_MS, intervalMs: 200 },
    ).catch((error: unknown) => {
      throw error instanceof Violation ? error : new Violation('truth', String(error));
    });
  }

  #isOurs = (site: string) => (SITES as readonly string[]).includes(site);

  async #namesOf(site: string): Promise<string[]> {
    const { repository } = this.#world;
    const view = this.#view ?? (await viewGit(repository));
    const text = await textInForce(repository, view, site);
    if (text === null) throw new Violation('truth', `${site} is Ready, and git has no valid manifest of it`);
    const { hostnames, customDomains } = named.parse(parse(text));
    return [hostnames.edge, ...customDomains];
  }

  async #remember(): Promise<void> {
    const { sites } = await this.#world.statuses();
    this.#holders = new Map();
    this.ready = sites.filter(({ site, reason }) => reason === 'Ready' && this.#isOurs(site)).length;
    for (const { site, reason } of sites) {
      if (reason !== 'Ready' || !this.#isOurs(site)) continue;
      this.#standing.add(site);
      this.#drifted.delete(site);
      this.#ended.delete(site);
      for (const name of await this.#namesOf(site)) this.#holders.set(name, site);
    }
  }
}
