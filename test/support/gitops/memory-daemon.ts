import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { expect } from 'vitest';
import { contentHash, readMark } from '../../../base/ownership.ts';
import type { Applier, Change, Progress, Scope, Target, Traits } from '../../../gitops/appliers/contract.ts';
import { DesiredStateReader } from '../../../gitops/desired/reader.ts';
import { buildDaemon } from '../../../gitops/http/app.ts';
import type { DaemonDeps } from '../../../gitops/http/deps.ts';
import { Loop, type LoopDeps } from '../../../gitops/loop/loop.ts';
import { Operations } from '../../../gitops/loop/operations.ts';
import { frozenBy } from '../../../gitops/pass/freeze.ts';
import type { CertificateStatus } from '../../../gitops/report/report.ts';
import type { SiteCondition } from '../../../gitops/report/site-condition.ts';
import { formatManifest } from '../../../sites/manifest/load.ts';
import type { SiteZones } from '../../../sites/manifest/own-zones.ts';
import type { ManifestInput } from '../../../sites/manifest/schema.ts';
import { encryptSecret } from '../../../sites/manifest/secrets.ts';
import { openSitesRepo } from '../../../sites/repo/sites-repo.ts';
import { eventually } from '../eventually.ts';
import { manifestInput, ZONES } from '../manifest.ts';
import { type MemoryWorld, memoryApplier } from './memory-applier.ts';
import { TARGETS, TRAITS } from './targets.ts';

export const SECRET = 'an infra secret';
export const READ_TOKEN = 'a token for plans';
const HOST = 'tag-1';
const identity = { instance: 'test', host: HOST };

type Fault = (target: Target, at: 'observe' | Change) => Error | undefined;
export type LoopOptions = Partial<
  Pick<LoopDeps, 'policy' | 'drift' | 'known' | 'intervalSeconds' | 'drainSeconds' | 'runsAtOnce' | 'clock'>
> & {
  /** Puts the repository behind a URL, with this poll interval. */
  readonly pollSeconds?: number;
  /** Unset: the routes of container logs don't exist. */
  readonly containerLogs?: DaemonDeps['containerLogs'];
  /** With `pollSeconds`: the URL of the new repository `sites.git` in this folder. */
  readonly urlUnder?: (folder: string) => Promise<string>;
  readonly objectFormat?: 'sha1' | 'sha256';
  readonly pushWebhook?: DaemonDeps['pushWebhook'];
};

/**
 * A provisioner in this process: the real application and loop on a real repository. The objects of each target are in a
 * map, except for the targets of `real`.
 */
export async function memoryDaemon(
  {
    pollSeconds,
    containerLogs,
    pushWebhook,
    objectFormat = 'sha1',
    urlUnder = async (folder) => pathToFileURL(join(folder, 'sites.git')).href,
    zones = ZONES,
    newerIdentity,
    ...options
  }: LoopOptions & { zones?: SiteZones; newerIdentity?: string } = {},
  real: readonly Applier[] = [],
) {
  const dir = await mkdtemp(join(tmpdir(), 'tagyard-daemon-'));
  const sitesRepo = join(dir, 'sites.git');
  const format = `--object-format=${objectFormat}`;
  execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', format, sitesRepo]);
  const repo =
    pollSeconds === undefined
      ? await openSitesRepo({ url: sitesRepo, cacheDir: dir })
      : await openSitesRepo({
          url: await urlUnder(dir),
          cacheDir: join(dir, 'mirror'),
          pollSeconds,
        });
  const identityOfCiphers = await generateIdentity();
  const ageIdentity = `${newerIdentity === undefined ? '' : `${newerIdentity}\n`}${identityOfCiphers}`;
  const recipient = await identityToRecipient(identityOfCiphers);
  const config = 'aWQ9R1RNLVg=';
  // Another ciphertext for each client of the tests: an unbound one may not be in the sites of two.
  const ciphers = await Promise.all(Array.from({ length: 16 }, () => encryptSecret(recipient, config)));
  const cipherOf = ({ client }: Partial<ManifestInput>) =>
    ciphers[Number.parseInt(client?.at(-1) ?? '7', 16) % ciphers.length] ?? '';
  const worlds = new Map<Target, MemoryWorld>(TARGETS.map((target) => [target, new Map()]));
  const control: {
    fault: Fault;
    before: (change: Change, progress: Progress) => Promise<void> | void;
    certificates: (site: string) => readonly CertificateStatus[];
    conditions: (site: string) => readonly SiteCondition[];
  } = {
    fault: () => undefined,
    before: () => undefined,
    certificates: () => [],
    conditions: () => [],
  };
  /** Each observation: the target, its scope (`null`: all sites), and how many passes had ended before. */
  const observations: { target: Target; sites: string[] | null; pass: number }[] = [];
  const applied: Change[] = [];

  function world(target: Target): MemoryWorld {
    const found = worlds.get(target);
    if (found === undefined) throw new Error(`${target} has no world`);
    return found;
  }

  function applier(traits: Traits): Applier {
    const { target } = traits;
    const inner: Applier = memoryApplier({
      target: traits,
      identity,
      world: world(target),
      fault: (at) => control.fault(target, at),
      desired: (manifest) =>
        [manifest.hostnames.edge, ...manifest.customDomains].map((name) => ({
          target,
          site: manifest.site,
          key: name,
          hash: contentHash([name, manifest.name, manifest.image]),
          summary: `${target} of ${name}`,
          adopt: manifest.adopt,
          spec: { image: manifest.image },
        })),
    });
    return {
      ...inner,
      observe(desired, signal, scope?: Scope) {
        const sites = scope === undefined ? null : [...scope.sites].sort();
        observations.push({ target, sites, pass: running.loop.passes });
        return inner.observe(desired, signal);
      },
      async apply(change, signal, run = {}) {
        await control.before(change, run.progress ?? (() => {}));
        await inner.apply(change, signal);
        applied.push(change);
      },
    };
  }

  function build(extra: LoopOptions = {}) {
    const operations = new Operations([], () => undefined, options.clock);
    const reader = new DesiredStateReader(repo, {
      host: HOST,
      ageIdentity,
      zones,
      appliedRevision: (site) => loop.status(site)?.applied ?? null,
    });
    const loop = new Loop({
      repo,
      reader,
      appliers: TRAITS.map(
        (traits) => real.find(({ target }) => target === traits.target) ?? applier(traits),
      ),
      operations,
      host: HOST,
      drainSeconds: 0,
      intervalSeconds: 600,
      frozen: () => frozenBy(join(dir, 'freeze')),
      known: { revision: null, sites: [] },
      onChange: () => undefined,
      log: { info: () => undefined, warn: () => undefined },
      ...options,
      ...extra,
    });
    const app = buildDaemon({
      repo,
      reader,
      loop,
      operations,
      host: HOST,
      ageIdentity,
      secrets: [SECRET],
      readToken: READ_TOKEN,
      certificatesOf: (site) => control.certificates(site),
      conditionsOf: (site) => control.conditions(site),
      // The edge knows what is in its stores.
      askEdge: async ({ hostnames: { edge } }) => ({
        served: world('kv').has(edge),
        detail: `the edge and ${edge}`,
      }),
      ...(containerLogs === undefined ? {} : { containerLogs }),
      ...(pushWebhook === undefined ? {} : { pushWebhook }),
      ...(real.some(({ quota }) => quota !== undefined)
        ? { quotas: () => real.flatMap((one) => one.quota?.() ?? []) }
        : {}),
    });
    loop.start();
    return { operations, loop, app };
  }
  let running = build();

  const daemon = {
    dir,
    repo,
    sitesRepo,
    recipient,
    ageIdentity,
    /** The default `containerConfig` of manifests, decrypted. */
    config,
    observations: observations,
    applied,
    control,
    world,
    get loop() {
      return running.loop;
    },
    get app() {
      return running.app;
    },
    /** Replaces the daemon by a new one that starts from the state of this one. */
    async restart(extra: LoopOptions = {}) {
      const known = { revision: running.loop.revision, sites: running.loop.statuses() };
      await running.loop.stop();
      await running.app.close();
      running = build({ known, ...extra });
    },
    manifest: (site: string, number: number, extra: Partial<ManifestInput> = {}): ManifestInput =>
      manifestInput(site, number, {
        hostnames: {
          edge: `${site}.${zones.edgeDomain}`,
          origin: `${site}-origin.${zones.originDomain}`,
          preview: `${site}-preview.${zones.originDomain}`,
        },
        containerConfig: cipherOf(extra),
        ...extra,
      }),
    /** Commits one file, like an operator; `null` deletes it. */
    push: (site: string, file: ManifestInput | string | null) =>
      repo.commit({
        site,
        edit: () => (file === null || typeof file === 'string' ? file : formatManifest(file)),
        subject: 'By hand',
        author: { name: 'Op', email: 'op@example.test' },
        trailers: {},
      }),
    async call(method: 'GET' | 'POST' | 'DELETE', url: string, body?: object) {
      const answer = await running.app.inject({
        method,
        url,
        headers: { 'x-secret': SECRET },
        ...(body ? { payload: body } : {}),
      });
      return { status: answer.statusCode, body: answer.json() };
    },
    reaches: (site: string, reason: string) =>
      eventually(() => {
        expect(running.loop.status(site)).toMatchObject({ reason });
        return running.loop.status(site);
      }),
    /** Resolves when a pass over this revision has ended. */
    hasRead: (revision: string) => eventually(() => expect(running.loop.revision).toBe(revision)),
    /** Starts a full pass, and resolves when it has ended. */
    async fullPass() {
      const before = observations.length;
      running.loop.sync();
      await eventually(
        () => {
          const observation = observations
            .slice(before)
            .find(({ target, sites }) => target === 'containers' && sites === null);
          expect(observation).toBeDefined();
          expect(running.loop.passes).toBeGreaterThan(observation?.pass ?? Number.POSITIVE_INFINITY);
        },
        { intervalMs: 10 },
      );
    },
    /** Keys of a target's objects with the site's mark. */
    of: (target: Target, site: string) =>
      [...world(target)].flatMap(([key, { mark }]) => {
        const { owner } = readMark(identity, mark);
        return owner.kind === 'ours' && owner.site === site ? [key] : [];
      }),
    /** The number of objects with the site's mark, over all targets. */
    objectCount: (site: string) => TARGETS.reduce((sum, target) => sum + daemon.of(target, site).length, 0),
    async close() {
      await running.loop.stop();
      await running.app.close();
      await rm(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
  return daemon;
}

export type MemoryDaemon = Awaited<ReturnType<typeof memoryDaemon>>;
