import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RetryableError } from '../../../../base/errors.ts';
import { followedDns } from '../../../../gitops/appliers/dns/followed.ts';
import type { FollowedDestination } from '../../../../gitops/appliers/followed-destination.ts';
import { dnsZone, HOST, OTHER_HOST, SIGNAL as signal } from '../../../support/cloudflare/dns-zone.ts';
import { type CloudflareWorld, cloudflareWorld } from '../../../support/cloudflare/world.ts';

let world: CloudflareWorld;
beforeEach(async () => {
  world = await cloudflareWorld();
});
afterEach(() => world.close());
const { dns, sites, records, planOf, pass } = dnsZone(() => world);

/** A destination that states this address or name; `null`: none. */
function destination(first: string | null): FollowedDestination & { stated: string | null } {
  let current: string | null = null;
  const followed = {
    stated: first,
    current: () => current,
    async check() {
      if (followed.stated === null) throw new RetryableError('the Service has no address yet');
      current = followed.stated;
    },
    async *changes() {},
  };
  return followed;
}

const build = (hostAddress: string) => dns('site', { hostAddress });
/** Plans once, which finds the destination, and then makes a pass. */
async function settle(applier: ReturnType<typeof build>, count: number): Promise<void> {
  await planOf(applier).catch((error: unknown) => expect(error).toBeInstanceOf(RetryableError));
  await pass(applier, ...sites(count));
}

describe('records that lead to an address that can change', () => {
  test('point to the stated address, and follow it to another one', async () => {
    const to = destination(HOST);
    const applier = followedDns(to, build);
    await settle(applier, 1);
    expect(await records()).toContain(`shop-0-origin.example.net A ${HOST}`);
    const edition = applier.edition?.(sites(1)[0] as never);
    to.stated = OTHER_HOST;
    await expect(planOf(applier, ...sites(1))).rejects.toThrow('has just changed');
    expect(applier.edition?.(sites(1)[0] as never)).not.toBe(edition);
    await pass(applier, ...sites(1));
    expect(await records()).toContain(`shop-0-origin.example.net A ${OTHER_HOST}`);
    expect(await planOf(applier, ...sites(1))).toEqual({ changes: [], conflicts: [] });
  });

  test('become aliases where a name is stated', async () => {
    const applier = followedDns(destination('balancer.example.com'), build);
    await settle(applier, 1);
    expect(await records()).toEqual(
      expect.arrayContaining([
        'shop-0-origin.example.net CNAME balancer.example.com',
        'shop-0-preview.example.net CNAME balancer.example.com',
      ]),
    );
  });

  test('stay as they are while nothing is stated, after a restart too', async () => {
    await settle(followedDns(destination(HOST), build), 1);
    const before = await records();
    const restarted = followedDns(destination(null), build);
    await expect(restarted.observe([], signal)).rejects.toThrow('has no address yet');
    expect(restarted.desired(sites(1)[0] as never)).toEqual([]);
    expect(restarted.quota?.()).toBeNull();
    expect(await records()).toEqual(before);
  });
});
