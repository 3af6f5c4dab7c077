import assert from 'node:assert/strict';
import type { Behaviour } from '../behaviour.ts';
import { NotTried } from '../not-tried.ts';
import { assertRefused, type CloudflareTarget, call, createdId, succeed } from './target.ts';

const source = 'Cloudflare API';

/** A stand-in: only there can a clock be moved, and thousands of calls cost nothing. */
interface EmulatedCloudflare extends CloudflareTarget {
  advance(ms: number): void;
  /** A worker that exists. */
  readonly script: string;
}

/** Makes calls slowly enough not to reach the limit of calls. */
async function each(target: EmulatedCloudflare, count: number, work: (index: number) => Promise<unknown>) {
  for (let index = 0; index < count; index += 1) {
    target.advance(300);
    await work(index);
  }
}

interface QuotaBehaviour extends Behaviour<EmulatedCloudflare> {
  /** What a run on a real zone would do. */
  readonly cost: string;
}

const FILLS = 'trying this would fill the zone';

/** What would cost a real zone thousands of calls, or fill it. */
export const quotaBehaviours: readonly QuotaBehaviour[] = [
  {
    name: 'refuses every call for five minutes after 1,200 calls in five minutes',
    source,
    cost: 'trying this would use up the calls of the token’s user for five minutes',
    async check(target) {
      target.advance(600_000);
      for (let index = 0; index < 1200; index += 1) await succeed(target, 'GET', `/zones/${target.zone.id}`);
      const refused = await call(target, 'GET', `/zones/${target.zone.id}`);
      assertRefused(refused, 429, 10500);
      assert.equal(refused.headers.get('retry-after'), '300');
      target.advance(299_999);
      assertRefused(await call(target, 'GET', '/zones'), 429, 10500);
      target.advance(1);
      await succeed(target, 'GET', '/zones');
    },
  },
  {
    name: 'refuses the 1,001st route of a zone',
    source,
    cost: FILLS,
    async check(target) {
      const path = `/zones/${target.zone.id}/workers/routes`;
      const route = (index: number) => ({ pattern: `r${index}.${target.prefix}.${target.zone.name}/*` });
      await each(target, 1000, (index) => succeed(target, 'POST', path, route(index)));
      assertRefused(await call(target, 'POST', path, route(1000)), 400, 10073);
    },
  },
  {
    name: 'refuses the 101st custom domain of a zone',
    source,
    cost: FILLS,
    async check(target) {
      const path = `/accounts/${target.account}/workers/domains`;
      const domain = (index: number) => ({
        hostname: `d${index}.${target.prefix}.${target.zone.name}`,
        service: target.script,
        environment: 'production',
        zone_id: target.zone.id,
      });
      await each(target, 100, (index) => createdId(target, 'PUT', path, domain(index)));
      assertRefused(await call(target, 'PUT', path, domain(100)), 403, 100122);
    },
  },
  {
    name: 'refuses the 201st DNS record of a zone',
    source,
    cost: FILLS,
    async check(target) {
      const path = `/zones/${target.zone.id}/dns_records`;
      const record = (index: number) => ({
        type: 'TXT',
        name: `t${index}.${target.prefix}.${target.zone.name}`,
        content: '"x"',
      });
      const posts = Array.from({ length: 200 }, (_, index) => record(index));
      await succeed(target, 'POST', `${path}/batch`, { posts });
      assertRefused(await call(target, 'POST', path, record(200)), 400, 81045);
    },
  },
];

/** The same behaviours for a run against an API at an address: they are listed as not tried. */
export const untriedQuotas: readonly Behaviour<CloudflareTarget>[] = quotaBehaviours.map(
  ({ name, cost, ...behaviour }) => ({
    ...behaviour,
    name,
    async check() {
      throw new NotTried(`${cost}; only the emulator’s own tests try it`);
    },
  }),
);
