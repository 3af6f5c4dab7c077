import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { ProvisionerClient } from '../../management/clients/provisioner-client.ts';
import { claimedNames } from '../../management/records/sites.repository.ts';
import { parseManifest } from '../../sites/manifest/load.ts';
import type { ManifestInput } from '../../sites/manifest/schema.ts';
import { tagyardOf } from '../support/cli/command.ts';
import { eventually } from '../support/eventually.ts';
import { ACCIDENTS, type Whole } from '../support/faults/accidents.ts';
import { type Stage, stage } from '../support/faults/stage.ts';
import type { RunningDaemon } from '../support/gitops/daemon.ts';
import { World } from '../support/management/world.ts';

const SITES = Array.from({ length: 6 }, (_, number) => `site-${number}`);

/** A real provisioner, and management that polls the same repository behind a URL. */
let on: Stage;
let daemon: RunningDaemon;
let world: World;
let manifests: Record<string, ManifestInput>;
const asked = vi.spyOn(ProvisionerClient.prototype, 'site');

beforeAll(async () => {
  on = await stage();
  daemon = await on.start();
  const { secret } = on.settings();
  world = await World.open({
    bare: on.sitesRepo,
    remote: true,
    daemon: { url: daemon.url, secret },
    settings: { ageRecipient: on.recipient },
  });
  const client = await world.client();
  manifests = Object.fromEntries(
    SITES.map((site, number) => [site, on.manifest(site, number, { client })] as const),
  );
  await on.push(manifests);
});
afterAll(async () => {
  await world?.close();
  await daemon?.kill();
  await on?.close();
});

const statuses = async (): Promise<Record<string, string>> => {
  const rows = await world.owner.selectFrom('containers').select(['site_id', 'status']).execute();
  return Object.fromEntries(rows.map(({ site_id, status }) => [site_id, status]));
};
/** Everything that containers hold: claims, leases and records. */
async function held() {
  const { owner } = world;
  return {
    ports: await owner
      .selectFrom('port_pool')
      .select(['processing', 'leased_by'])
      .where('leased_by', 'is not', null)
      .orderBy('processing')
      .execute(),
    names: await owner
      .selectFrom('domain_claims')
      .select(['domain', 'container_id'])
      .orderBy('domain')
      .execute(),
    sites: await owner.selectFrom('sites').select(['site_id', 'container_id']).orderBy('site_id').execute(),
    domains: await owner.selectFrom('site_domains').select(['domain', 'site_id']).orderBy('domain').execute(),
  };
}
const everywhere = (status: string) => Object.fromEntries(SITES.map((site) => [site, status]));
async function isWhole(): Promise<void> {
  await eventually(
    async () => {
      expect(await statuses()).toEqual(everywhere('active'));
      const { sites } = await daemon.sites();
      expect(sites.map(({ site, reason }) => [site, reason])).toEqual(SITES.map((site) => [site, 'Ready']));
    },
    { timeoutMs: 60_000 },
  );
}

describe('management, when all sites seem to be removed by accident', () => {
  /** For each accident, the sites that its commit removes; a rewritten branch removes none. */
  const REMOVALS: Readonly<Record<string, readonly string[]>> = {
    'all files are deleted in a commit': SITES,
  };
  let whole: Whole;
  let before: Awaited<ReturnType<typeof held>>;
  let writes: number;
  beforeEach(async () => {
    await isWhole();
    whole = { on, manifests, tip: (await on.repo.head()) ?? '' };
    before = await held();
    writes = 0;
    on.gate.watch(({ kind }) => {
      if (kind === 'world') writes += 1;
      return false;
    });
  });

  test.each(ACCIDENTS)(
    'releases no name or port while $name, and shows all sites as active after the repair',
    async (accident) => {
      const standing = on.snapshot();
      const removed = REMOVALS[accident.name] ?? [];
      await accident.happen(whole);
      await daemon.call('POST', '/sync');
      await eventually(async () => {
        const { sites } = await daemon.sites();
        const { lastError } = await daemon.figures();
        const said = [lastError ?? '', ...sites.map(({ message, reason }) => `${reason} ${message}`)];
        expect(said.join('\n')).toMatch(accident.says);
      });
      const seen = async () =>
        expect(await statuses()).toEqual({
          ...everywhere('active'),
          ...Object.fromEntries(removed.map((site) => [site, 'deprovisioning'])),
        });
      await eventually(seen);
      // The API refuses a change: it would overwrite what the accident did.
      const { container } = manifests['site-0'] ?? {};
      const body = { name: 'Renamed' };
      const { status } = await world.call('PATCH', `/server-containers/${container}`, { as: 'owner', body });
      expect(status).toBeGreaterThanOrEqual(400);
      await world.stop();
      await world.start();
      // Management asks again until the provisioner confirms the removal; a missing answer confirms nothing.
      asked.mockClear();
      await eventually(() => {
        for (const site of removed)
          expect(asked.mock.calls.filter(([name]) => name === site).length, site).toBeGreaterThan(1);
      });
      await seen();
      expect(await held()).toEqual(before);
      expect(writes).toBe(0);
      expect(on.snapshot()).toEqual(standing);

      await accident.repair(whole);
      await daemon.call('POST', '/sync');
      await isWhole();
      expect(await held()).toEqual(before);
      expect(writes).toBe(0);
      expect(on.snapshot()).toEqual(standing);
    },
  );
});

describe('concurrent changes by the API, by the command and by plain git, through a remote', () => {
  type Action = () => Promise<unknown>;
  let clone: string;
  const git = (...args: string[]) => world.git(clone, ...args);
  const idOf = (site: string) => manifests[site]?.container ?? '';

  /** Changes the site's file as a person does: after a rejected push, fetches and tries again. */
  const byGit =
    (site: string, change: ((text: string) => string) | null): Action =>
    async () => {
      await eventually(async () => {
        await git('fetch', '--quiet');
        await git('reset', '--quiet', '--hard', 'origin/main');
        const file = join(clone, `${site}.yaml`);
        if (change === null) await rm(file);
        else await writeFile(file, change(await readFile(file, 'utf8')));
        await git('commit', '--quiet', '--all', '--message', `By hand: ${site}`);
        await git('push', '--quiet', 'origin', 'HEAD:main');
      });
    };
  const named = (name: string) => (text: string) => text.replace(/^name: .*/m, `name: ${name}`);
  const byApi =
    (method: 'PATCH' | 'DELETE', site: string, body?: object): Action =>
    async () => {
      const answer = await world.call(method, `/server-containers/${idOf(site)}`, {
        as: 'owner',
        ...(body === undefined ? {} : { body }),
      });
      expect(answer.status).toBeLessThan(300);
    };
  const byCommand =
    (...args: string[]): Action =>
    async () =>
      expect(await tagyardOf(daemon.url)(args)).toMatchObject({ exitCode: 0 });
  /** Reverts the newest commit of the site's file, even if other commits follow it. Retries after a rejected push. */
  const revertByGit =
    (site: string): Action =>
    async () => {
      await eventually(async () => {
        await git('fetch', '--quiet');
        await git('reset', '--quiet', '--hard', 'origin/main');
        const newest = (await git('log', '-1', '--format=%H', '--', `${site}.yaml`)).trim();
        await git('revert', '--no-edit', newest);
        await git('push', '--quiet', 'origin', 'HEAD:main');
      });
    };
  const forced =
    (drop: number): Action =>
    async () => {
      await git('fetch', '--quiet');
      await git('push', '--quiet', '--force', 'origin', `origin/main~${drop}:main`);
    };

  /** Host and database match git in every lease and name. */
  async function agree(): Promise<void> {
    await eventually(
      async () => {
        const head = (await on.repo.head()) ?? '';
        const wanted = (await on.repo.read(head)).flatMap(({ text, path }) => {
          const parsed = parseManifest(text, path);
          return parsed.ok && parsed.manifest.state === 'present' ? [parsed.manifest] : [];
        });
        const rows = await world.owner
          .selectFrom('containers')
          .select(['site_id', 'status', 'manifest'])
          .orderBy('site_id')
          .execute();
        const live = rows.filter(({ status }) => status !== 'removed');
        expect(live).toMatchObject(
          wanted.map(({ site, name, features, domains, customDomains, ports }) => ({
            site_id: site,
            status: 'active',
            manifest: { name, features, domains, customDomains, ports },
          })),
        );
        const { ports, names } = await held();
        expect(ports).toMatchObject(
          wanted.map((one) => ({ processing: one.ports.processing, leased_by: one.container })),
        );
        const claims = wanted.flatMap((one) =>
          claimedNames(one).map((domain) => ({ domain, container_id: one.container })),
        );
        expect(names).toEqual(claims.sort((a, b) => (a.domain < b.domain ? -1 : 1)));
        const { sites, revision } = await daemon.sites();
        expect(revision).toBe(head);
        const ready = sites.filter(({ reason }) => reason !== 'Removed');
        expect(ready.map(({ site, reason }) => [site, reason])).toEqual(
          wanted.map(({ site }) => [site, 'Ready']),
        );
      },
      { timeoutMs: 60_000 },
    );
  }

  test('keep host and database equal to git, round after round', async () => {
    await isWhole();
    clone = await world.clone();
    const rounds: readonly (readonly Action[])[] = [
      [
        byApi('PATCH', 'site-0', { name: 'By the API' }),
        byGit('site-0', (text) => text.replace('multi_domain: false', 'multi_domain: true')),
        byApi('PATCH', 'site-1', { features: { cookie_restoration: true } }),
      ],
      [
        byCommand('revert', 'site-0'),
        byGit('site-1', (text) => text.replace('customDomains: []', 'customDomains: [m.site-1.example]')),
        byApi('PATCH', 'site-1', { name: 'By the API' }),
      ],
      [byGit('site-2', null), byApi('PATCH', 'site-3', { name: 'Before its removal' })],
      [byApi('DELETE', 'site-3'), byGit('site-3', named('Too late, or not'))],
      [
        byGit('site-1', named('By hand')),
        byCommand('suspend', 'site-4'),
        byApi('PATCH', 'site-5', { name: 'x' }),
      ],
      [revertByGit('site-2'), byCommand('resume', 'site-4')],
      [byGit('site-5', named('One'))],
      [byGit('site-5', named('Two'))],
      [forced(2)],
      [byGit('site-5', named('Three'))],
      [forced(1), byApi('PATCH', 'site-0', { name: 'Kept or not' })],
    ];
    for (const round of rounds) {
      await Promise.all(round.map((act) => act()));
      await agree();
    }
    const gone = Object.entries(await statuses()).filter(([, status]) => status === 'removed');
    expect(gone.map(([site]) => site)).toEqual(['site-3']);
  });
});
