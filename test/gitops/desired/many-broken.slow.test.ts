import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { DesiredStateReader } from '../../../gitops/desired/reader.ts';
import { formatManifest } from '../../../sites/manifest/load.ts';
import type { ManifestInput } from '../../../sites/manifest/schema.ts';
import { encryptSecret } from '../../../sites/manifest/secrets.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo } from '../../../sites/repo/sites-repo.ts';
import { manifestInput, ZONES } from '../../support/manifest.ts';

let dir: string;
let bare: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tagyard-broken-'));
  bare = join(dir, 'sites.git');
  await initSitesRepo(bare);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(dir, { recursive: true, force: true });
});

type Files = ReadonlyMap<string, string>;

/** Commits these files at once. Returns the commit's id. */
const commit = (files: Files, ...parents: string[]) => commitEach([files], ...parents);

/** Makes one commit after another, the first one on these parents. Returns the id of the last. */
function commitEach(commits: readonly Files[], from = '', merged = ''): string {
  const texts = commits.map((files, index) => {
    const parts = [...files].map(
      ([path, text]) => `M 100644 inline ${path}\ndata ${Buffer.byteLength(text)}\n${text}\n`,
    );
    const head = 'commit refs/heads/main\ncommitter Op <op@example.test> 1 +0000\ndata 1\nx\n';
    const parents = index > 0 ? '' : `${from && `from ${from}\n`}${merged && `merge ${merged}\n`}`;
    return `${head}${parents}${parts.join('')}\n`;
  });
  const input = `${texts.join('')}done\n`;
  execFileSync('git', ['fast-import', '--quiet', '--done', '--force'], { cwd: bare, input });
  return execFileSync('git', ['rev-parse', 'main'], { cwd: bare, encoding: 'utf8' }).trim();
}

/** How many git processes the work starts. A `git` before the real git in PATH writes a line for each. */
async function processesOf(work: () => Promise<unknown>): Promise<number> {
  const bin = join(dir, 'bin');
  const calls = join(dir, 'calls');
  await mkdir(bin, { recursive: true });
  const script = `#!/bin/sh\necho x >> '${calls}'\nPATH='${process.env.PATH}' exec git "$@"\n`;
  await writeFile(join(bin, 'git'), script, { mode: 0o755 });
  await writeFile(calls, '');
  vi.stubEnv('PATH', `${bin}:${process.env.PATH}`);
  await work();
  vi.unstubAllEnvs();
  return (await readFile(calls, 'utf8')).split('\n').length - 1;
}

test.each<[string, (number: number) => string]>([
  ['new', (number) => `broken-${number}`],
  ['valid before', (number) => `site-${number}`],
])('many broken manifests need as many git processes as a few: %s', async (_what, nameOf) => {
  const ageIdentity = await generateIdentity();
  const containerConfig = await encryptSecret(await identityToRecipient(ageIdentity), 'aWQ9R1RNLVg=');
  const counts: number[] = [];
  for (const count of [10, 90]) {
    const names = Array.from({ length: 100 }, (_, number) => `site-${number}`);
    const valid = new Map(
      names.map((name, number) => [
        `${name}.yaml`,
        formatManifest(manifestInput(name, number, { containerConfig })),
      ]),
    );
    execFileSync('git', ['update-ref', '-d', 'refs/heads/main'], { cwd: bare });
    const first = commit(valid);
    const broken = Array.from({ length: count }, (_, number) => [`${nameOf(number)}.yaml`, 'x: [']);
    const second = commit(new Map(broken as [string, string][]), first);
    const repo = await openSitesRepo({ url: bare, cacheDir: dir });
    const reader = new DesiredStateReader(repo, { host: 'tag-1', zones: ZONES, ageIdentity });
    const fresh = new DesiredStateReader(repo, { host: 'tag-1', zones: ZONES, ageIdentity });
    await reader.read(first);
    counts.push(await processesOf(() => reader.read(second)));
    counts.push(await processesOf(() => fresh.read(second)));
    for (const one of [reader, fresh]) {
      const { sites } = await one.read(second);
      const stalled = [...sites.values()].filter((site) => site.stalled?.reason === 'InvalidManifest');
      expect(stalled).toHaveLength(count);
      expect([...sites.values()].filter(({ manifest }) => manifest !== null)).toHaveLength(100);
    }
  }
  const [running = 0, start = 0, runningMany = 0, startMany = 0] = counts;
  expect([runningMany, startMany]).toEqual([running, start]);
  expect(running).toBeGreaterThan(0);
});

describe('a name that many sites claim', () => {
  const CLIENT = '7c9e6679-7425-40de-944b-e07fc1f90aff';
  const claim: Record<string, (number: number) => Partial<ManifestInput>> = {
    'a port': () => ({ ports: { processing: 29_000, preview: 29_001 } }),
    'a domain of another client': (number) => ({
      client: CLIENT,
      domains: [
        {
          domain: `n${number}.site-0.example`,
          webTagId: 'GTM-ABC1234',
          token: `ct_rival0token0${1_000 + number}`,
        },
      ],
    }),
  };

  test.each(
    Object.keys(claim).flatMap((name) =>
      ['by one commit', 'by a commit each', 'by one merge'].map((how) => [name, how]),
    ),
  )('needs as many git processes as a name that few sites claim: %s, %s', async (name, how) => {
    const ageIdentity = await generateIdentity();
    const containerConfig = await encryptSecret(await identityToRecipient(ageIdentity), 'aWQ9R1RNLVg=');
    const text = (site: string, number: number, extra: Partial<ManifestInput> = {}) =>
      formatManifest(manifestInput(site, number, { containerConfig, ...extra }));
    const counts: number[] = [];
    // Both numbers of rivals take two pages of the log.
    for (const count of [70, 140]) {
      execFileSync('git', ['update-ref', '-d', 'refs/heads/main'], { cwd: bare });
      const sites = Array.from({ length: 150 }, (_, number) => `site-${number}`);
      const first = commitEach(sites.map((site, number) => new Map([[`${site}.yaml`, text(site, number)]])));
      const before = revisions();
      const rivals = Array.from({ length: count }, (_, number): [string, string] => {
        const site = `rival-${number}`;
        return [`${site}.yaml`, text(site, 200 + number, claim[name]?.(number))];
      });
      let last = first;
      if (how === 'by one commit') last = commit(new Map(rivals), first);
      else
        last = commitEach(
          rivals.map((rival) => new Map([rival])),
          first,
        );
      if (how === 'by one merge') last = commit(new Map(rivals), first, last);
      const repo = await openSitesRepo({ url: bare, cacheDir: dir });
      // Each site was applied at a revision of its own.
      const appliedRevision = (site: string) => before[Number(site.split('-')[1])] ?? null;
      const reader = new DesiredStateReader(repo, {
        host: 'tag-1',
        zones: ZONES,
        ageIdentity,
        appliedRevision,
      });
      let lost = new Set<string>();
      counts.push(
        await processesOf(async () => {
          const { sites } = await reader.read(last);
          lost = new Set(
            [...sites.values()]
              .filter(({ stalled }) => stalled?.reason === 'NameTaken')
              .map(({ site }) => site),
          );
        }),
      );
      // The first of the rivals gets the port. The domain belongs to a client that came before all of them.
      const isFirst = (site: string) => name === 'a port' && site === 'rival-0';
      expect([...lost].sort()).toEqual(
        rivals
          .map(([path]) => path.slice(0, -'.yaml'.length))
          .filter((site) => !isFirst(site))
          .sort(),
      );
    }
    expect(counts[1]).toBe(counts[0]);
    expect(counts[0]).toBeGreaterThan(0);
  });
});

/** All commits of the branch, newest first. */
function revisions(): string[] {
  const listed = execFileSync('git', ['rev-list', 'main'], { cwd: bare, encoding: 'utf8' });
  return listed.trim().split('\n');
}
