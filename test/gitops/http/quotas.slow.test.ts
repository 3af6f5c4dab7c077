import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { formatMark } from '../../../base/ownership.ts';
import { dnsApplier } from '../../../gitops/appliers/dns/applier.ts';
import { cloudflareDns } from '../../../gitops/appliers/dns/cloudflare.ts';
import { limitRecords } from '../../support/cloudflare/quota.ts';
import { type CloudflareWorld, cloudflareWorld } from '../../support/cloudflare/world.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon, SECRET } from '../../support/gitops/memory-daemon.ts';

const identity = { instance: 'test', host: 'tag-1' };
let world: CloudflareWorld;
let daemon: MemoryDaemon;
/** The limit that the setting states; the zone itself takes what `limitRecords` allows. */
let limit = 0;
beforeEach(async () => {
  world = await cloudflareWorld();
  const provider = cloudflareDns({ client: world.client, zoneId: world.emulator.zone.id });
  const zone = { zone: 'example.net', hostAddress: '198.51.100.4' };
  daemon = await memoryDaemon({}, [dnsApplier({ provider, identity, ...zone, quota: async () => limit })]);
});
afterEach(async () => {
  await daemon.close();
  await world.close();
});

const provision = (site: string, number: number) =>
  daemon.call('POST', '/provision?wait=10', daemon.manifest(site, number));
const check = async () => {
  const { body } = await daemon.call('GET', '/health');
  return body.checks.find(({ name }: { name: string }) => name === 'quotas');
};
const metrics = async () => {
  const answer = await daemon.app.inject({ url: '/metrics', headers: { 'x-secret': SECRET } });
  return answer.body.split('\n').filter((line) => line.startsWith('tagyard_quota'));
};

describe('a quota', () => {
  test('that is near shows at host, site, check and metrics and keeps no site from being ready', async () => {
    limit = 16;
    for (let number = 0; number < 10; number += 1) {
      const note = { type: 'TXT', name: `note-${number}`, content: '"theirs"' };
      await world.emulator.call('POST', `/zones/${world.emulator.zone.id}/dns_records`, note);
    }
    await provision('one', 1);
    const near = '13 of 16 DNS records of the zone';
    expect((await daemon.call('GET', '/sites')).body).toMatchObject({
      quotas: [{ name: 'dns_records', used: 13, limit: 16, perSite: 3, state: 'quota_near', message: near }],
      sites: [{ site: 'one', ready: true, conditions: [{ condition: 'quota_near', message: near }] }],
    });
    expect((await daemon.call('GET', '/sites/one')).body.conditions).toHaveLength(1);
    expect((await daemon.call('GET', '/quotas')).body.quotas).toMatchObject([{ state: 'quota_near' }]);
    expect(await check()).toMatchObject({
      status: 'failed',
      detail: `quota_near: ${near}`,
      fix: expect.stringContaining('DNS_RECORD_MODE=wildcard'),
    });
    expect(await metrics()).toEqual([
      'tagyard_quota_used{quota="dns_records"} 13',
      'tagyard_quota_limit{quota="dns_records"} 16',
      'tagyard_quota_near{quota="dns_records"} 1',
    ]);
    // Counted with every change, not only with the next observation.
    await provision('two', 2);
    expect((await daemon.call('GET', '/sites/two')).body).toMatchObject({
      ready: true,
      conditions: [{ condition: 'quota_reached' }],
    });
    limit = 100;
    await daemon.fullPass();
    expect((await daemon.call('GET', '/sites/one')).body.conditions).toBeUndefined();
    expect(await check()).toMatchObject({ status: 'passed', fix: null });
  });

  test('isn’t near in the metrics if only an unused record fails the check', async () => {
    limit = 100;
    const mark = formatMark({ instance: 'test', host: 'tag-2' }, '-', '0123abcd');
    const unused = { type: 'A', name: '*.example.net', content: '198.51.100.9', comment: mark };
    await world.emulator.call('POST', `/zones/${world.emulator.zone.id}/dns_records`, unused);
    await provision('one', 1);
    await daemon.fullPass();
    expect(await check()).toMatchObject({
      status: 'failed',
      fix: expect.stringMatching(/^Delete what is unused/),
    });
    expect(await metrics()).toContain('tagyard_quota_near{quota="dns_records"} 0');
  });

  test('without room for another site refuses it at once, but allows changes of existing sites', async () => {
    limit = 5;
    await provision('one', 1);
    const refused = await provision('two', 2);
    expect(refused).toMatchObject({
      status: 409,
      body: {
        code: 'quota_reached',
        detail: expect.stringMatching(/^3 of 5 DNS records .*DNS_RECORD_MODE=wildcard/),
      },
    });
    expect(await daemon.repo.history('two')).toEqual([]);
    expect(await provision('one', 1)).toMatchObject({ status: 200 });
    const domain = { site: 'one', domain: 'm.one.example' };
    expect(await daemon.call('POST', '/custom-domain?wait=10', domain)).toMatchObject({ status: 200 });
    limit = 100;
    await daemon.fullPass();
    expect(await provision('two', 2)).toMatchObject({ status: 200 });
  });

  test('that the zone enforces shows at the site that has no room; other sites are applied', async () => {
    limit = 100;
    limitRecords(world, 4);
    await provision('one', 1);
    await daemon.push('two', daemon.manifest('two', 2));
    const stuck = await daemon.reaches('two', 'QuotaReached');
    expect(stuck?.message).toContain('Record quota exceeded. (81045)');
    expect(stuck?.message).toContain('DNS_RECORD_MODE=wildcard');
    const next = stuck?.resources.find(({ nextRetry }) => nextRetry !== undefined)?.nextRetry;
    expect(Date.parse(next ?? '') - Date.now()).toBeGreaterThan(25 * 60_000);
    // A change of another site is applied, and the one that is stuck isn't retried with it.
    world.faulty.calls.length = 0;
    await daemon.push('one', daemon.manifest('one', 1, { name: 'Another name' }));
    await daemon.fullPass();
    expect(daemon.loop.status('one')).toMatchObject({ ready: true });
    expect(world.faulty.calls.filter((call) => call.startsWith('POST'))).toEqual([]);
    const domain = { site: 'two', domain: 'm.two.example' };
    expect(await daemon.call('POST', '/custom-domain', domain)).toMatchObject({
      status: 409,
      body: { code: 'quota_reached' },
    });
    world.faulty.heal();
    await daemon.call('POST', '/apply', {});
    await eventually(() => expect(daemon.loop.status('two')).toMatchObject({ ready: true }));
  });

  test('fails its check while a host without sites has a wildcard in the zone', async () => {
    limit = 100;
    await provision('one', 1);
    expect(await check()).toMatchObject({ status: 'passed' });
    await world.emulator.call('POST', `/zones/${world.emulator.zone.id}/dns_records`, {
      type: 'A',
      name: '*',
      content: '198.51.100.5',
      comment: 'tgy1 test tag-2 - 01234567',
    });
    await daemon.fullPass();
    expect(await check()).toMatchObject({
      status: 'failed',
      detail: expect.stringContaining('*.example.net (Tagyard instance test on host tag-2)'),
      fix: expect.stringContaining('Delete what is unused'),
    });
    expect((await daemon.call('GET', '/quotas')).body.quotas).toMatchObject([
      { state: 'ok', unused: ['*.example.net (Tagyard instance test on host tag-2)'] },
    ]);
    expect(await provision('two', 2)).toMatchObject({ status: 200 });
  });
});
