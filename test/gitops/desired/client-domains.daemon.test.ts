import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { disputedDomains, lostDomains } from '../../../gitops/desired/client-domains.ts';
import { DesiredStateReader } from '../../../gitops/desired/reader.ts';
import { formatManifest } from '../../../sites/manifest/load.ts';
import type { ManifestInput } from '../../../sites/manifest/schema.ts';
import { encryptSecret } from '../../../sites/manifest/secrets.ts';
import { SitesRepoError } from '../../../sites/repo/errors.ts';
import { git } from '../../../sites/repo/git/git.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo } from '../../../sites/repo/sites-repo.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { loadedManifest, ZONES } from '../../support/manifest.ts';

const OTHER_CLIENT = '7c9e6679-7425-40de-944b-e07fc1f90aff';

let daemon: MemoryDaemon;
beforeEach(async () => {
  daemon = await memoryDaemon();
});
afterEach(() => daemon.close());

const page = (domain: string, number: number) => ({
  domain,
  webTagId: 'GTM-ABC1234',
  token: `ct_container0tok${number}`,
});
const acme = (extra: Partial<ManifestInput> = {}) =>
  daemon.manifest('acme', 1, { domains: [page('acme.example', 1001)], ...extra });
/** A site of another client with a domain below acme's. Its name sorts first in every listing. */
const rival = (extra: Partial<ManifestInput> = {}) =>
  daemon.manifest('aaa-rival', 2, {
    client: OTHER_CLIENT,
    domains: [page('shop.acme.example', 1002)],
    ...extra,
  });

describe('a registrable domain in which two clients have sites', () => {
  test('stays with the client that claimed it first, after restarts and after a loss of all state', async () => {
    await daemon.push('acme', acme());
    await daemon.reaches('acme', 'Ready');
    await daemon.push('aaa-rival', rival());
    const holds = async () => {
      const status = await daemon.reaches('aaa-rival', 'NameTaken');
      expect(status?.message).toBe(
        'acme.example belongs to the client of the site acme, which claimed it first',
      );
      await daemon.reaches('acme', 'Ready');
      expect(daemon.objectCount('aaa-rival')).toBe(0);
    };
    await holds();
    for (const known of [{}, { known: null }]) {
      await daemon.restart(known);
      await daemon.fullPass();
      await holds();
      await daemon.push('aaa-rival', rival({ name: `Edited ${daemon.loop.passes}` }));
      await daemon.fullPass();
      await holds();
    }
    await daemon.push('acme', null);
    await daemon.reaches('aaa-rival', 'Ready');
  });

  test('stays with its client’s later site when the client’s first site is gone', async () => {
    await daemon.push('acme', acme());
    await daemon.push('aaa-rival', rival());
    await daemon.push('acme-2', daemon.manifest('acme-2', 3, { domains: [page('two.acme.example', 1003)] }));
    await daemon.reaches('acme-2', 'Ready');
    await daemon.push('acme', acme({ state: 'absent' }));
    await daemon.reaches('acme', 'Removed');
    await daemon.reaches('aaa-rival', 'NameTaken');
    await daemon.reaches('acme-2', 'Ready');
  });

  test('may be used by both clients if an older release applied both sites, but not by a third', async () => {
    await daemon.push('acme', acme());
    const { revision } = await daemon.push('aaa-rival', rival());
    // The state that an older release recorded after it applied both.
    const status = (site: string) => ({ ...daemon.loop.status(site), applied: revision });
    await daemon.reaches('acme', 'Ready');
    await daemon.reaches('aaa-rival', 'NameTaken');
    const sites = [status('acme'), status('aaa-rival')] as never;
    await daemon.restart({ known: { revision, sites } });
    await daemon.fullPass();
    await daemon.reaches('aaa-rival', 'Ready');
    await daemon.push('aaa-rival', rival({ name: 'Edited' }));
    await daemon.fullPass();
    expect(await daemon.reaches('aaa-rival', 'Ready')).toMatchObject({ applied: daemon.loop.revision });
    const third = { client: '7c9e6679-7425-40de-944b-e07fc1f90a00', domains: [page('x.acme.example', 1004)] };
    await daemon.push('third', daemon.manifest('third', 4, third));
    await daemon.reaches('third', 'NameTaken');
    await daemon.reaches('acme', 'Ready');
  });

  test('is refused to a request of another client, and accepted from its own client', async () => {
    await daemon.push('acme', acme());
    await daemon.reaches('acme', 'Ready');
    expect(await daemon.call('POST', '/provision', rival())).toMatchObject({
      status: 409,
      body: { code: 'name_taken' },
    });
    const own = daemon.manifest('acme-2', 3, { domains: [page('two.acme.example', 1003)] });
    expect((await daemon.call('POST', '/provision', own)).status).toBe(202);
  });

  test('is never a private suffix: two clients may have names under one', async () => {
    await daemon.push('acme', acme({ domains: [page('acme.github.io', 1001)] }));
    await daemon.push('aaa-rival', rival({ domains: [page('rival.github.io', 1002)] }));
    await daemon.reaches('acme', 'Ready');
    await daemon.reaches('aaa-rival', 'Ready');
  });
});

test('a read fails if git lost an applied file, but not if git lacks the applied commit', async () => {
  const { repo, sitesRepo, dir } = daemon;
  const ageIdentity = await generateIdentity();
  const containerConfig = await encryptSecret(await identityToRecipient(ageIdentity), daemon.config);
  await daemon.push('acme', acme({ containerConfig }));
  const applied = (await daemon.push('acme', acme({ containerConfig, name: 'Applied' }))).revision;
  const [blob = ''] = (await repo.tree(applied)).files.map((file) => file.blob);
  // The branch is rewritten, so its history doesn't contain the applied version.
  const inNew = `${dir}/new.git`;
  await initSitesRepo(inNew);
  const other = await openSitesRepo({ url: inNew, cacheDir: dir });
  const edit = (site: string, file: ManifestInput) =>
    other.commit({
      site,
      edit: () => formatManifest(file),
      subject: 'By hand',
      author: { name: 'Op', email: 'op@example.test' },
      trailers: {},
    });
  await edit('aaa-rival', rival({ containerConfig }));
  const { revision } = await edit('acme', acme({ containerConfig, name: 'Edited' }));
  await git(sitesRepo, ['fetch', '--quiet', inNew, '+refs/heads/main:refs/heads/main']);
  const stalled = async (appliedRevision: string) => {
    const reader = new DesiredStateReader(repo, {
      host: 'tag-1',
      zones: ZONES,
      ageIdentity,
      appliedRevision: (site) => (site === 'acme' ? appliedRevision : null),
    });
    const { sites } = await reader.read(revision);
    return [...sites.values()].filter(({ manifest }) => manifest === null).map(({ site }) => site);
  };
  expect(await stalled(applied)).toEqual(['aaa-rival']);
  expect(await stalled('0123456789'.repeat(4))).toEqual(['acme']);
  await rm(join(sitesRepo, 'objects', blob.slice(0, 2), blob.slice(2)));
  await expect(stalled(applied)).rejects.toThrow(SitesRepoError);
});

describe('claims of several domains', () => {
  const site = (name: string, client: number, domains: string[]) =>
    loadedManifest(name, client, {
      client: `7c9e6679-7425-40de-944b-e07fc1f9000${client}`,
      domains: domains.map((domain, index) => page(domain, 1000 + index)),
    });
  const judge = (order: readonly ReturnType<typeof site>[], applied: Record<string, string[]> = {}) => {
    const claimants = order.map((manifest, index) => ({
      manifest,
      since: [index, index] as const,
      applied: new Set(applied[manifest.site]),
    }));
    const disputed = disputedDomains(order);
    const lost = lostDomains(claimants, disputed);
    expect(lostDomains(claimants.toReversed(), disputed)).toEqual(lost);
    return lost.map((one) => [one.site, one.domain, one.holder]);
  };
  const one = site('one', 1, ['a.example']);
  const two = site('two', 2, ['a.example', 'b.example']);
  const three = site('three', 3, ['b.example']);

  test('a site that lost one domain holds none of its other, unapplied domains', () => {
    expect(judge([one, two, three])).toEqual([['two', 'a.example', 'one']]);
    expect(judge([two, one, three])).toEqual([
      ['one', 'a.example', 'two'],
      ['three', 'b.example', 'two'],
    ]);
  });

  test('a site keeps an applied domain against an older claim, but not an unapplied one', () => {
    expect(judge([one, two, three], { two: ['a.example', 'b.example'] })).toEqual([
      ['one', 'a.example', 'two'],
      ['three', 'b.example', 'two'],
    ]);
    expect(judge([three, one, two], { two: ['a.example'] })).toEqual([
      ['one', 'a.example', 'two'],
      ['two', 'b.example', 'three'],
    ]);
  });

  test('only domains of the sites in `among` are disputed', () => {
    expect([...disputedDomains([one, two, three], [three]).keys()].sort()).toEqual(['three', 'two']);
    expect(disputedDomains([one, three]).size).toBe(0);
  });
});
