import { match } from 'node:assert/strict';
import type { Behaviour } from '../behaviour.ts';
import { call, refused } from './call.ts';
import { dnsBehaviours } from './dns.ts';
import { routeBehaviours } from './routes.ts';
import type { CloudflareTarget } from './target.ts';

const zoneOf = ({ zone }: CloudflareTarget): string => `/zones/${zone.id}`;

/** What `npm run conform -- --cloudflare` tries. */
export const cloudflareBehaviours: readonly Behaviour<CloudflareTarget>[] = [
  {
    name: 'refuses a wrong token with 401, and a header that is no bearer token with 400',
    source: 'Cloudflare API',
    async check(target) {
      const wrong = { authorization: `Bearer ${'x'.repeat(40)}` };
      refused(await call(target, ['GET', zoneOf(target)], wrong), [401, 10000]);
      refused(await call(target, ['GET', zoneOf(target)], { authorization: 'Basic eDp4' }), [400, 6003]);
    },
  },
  {
    name: 'answers 7003 for an id that can be none',
    source: 'Cloudflare API',
    async check(target) {
      refused(await call(target, ['GET', '/zones/no-id']), [404, 7003]);
    },
  },
  {
    name: 'says in each answer how many calls are left',
    source: 'Cloudflare API',
    async check(target) {
      const { headers } = await call(target, ['GET', zoneOf(target)]);
      match(headers.get('x-ratelimit-remaining') ?? 'none', /^\d+$/);
    },
  },
  ...dnsBehaviours,
  ...routeBehaviours,
];
