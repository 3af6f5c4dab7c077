import { deepEqual, equal } from 'node:assert/strict';
import type { Behaviour } from '../behaviour.ts';
import { call, nameOf, refused, routesOf } from './call.ts';
import type { CloudflareTarget } from './target.ts';

const API = 'Cloudflare API';
const PATTERNS = 'Cloudflare Workers';

export const routeBehaviours: readonly Behaviour<CloudflareTarget>[] = [
  {
    name: 'keeps a Workers route without a worker, and refuses its pattern a second time with 10020',
    source: API,
    async check(target) {
      const pattern = `${nameOf(target, 'twice')}/*`;
      const created = await call(target, ['POST', routesOf(target), { pattern }]);
      equal(created.status, 200);
      refused(await call(target, ['POST', routesOf(target), { pattern }]), [409, 10020]);
    },
  },
  {
    name: 'answers 10009 for a Workers route that was deleted',
    source: API,
    async check(target) {
      const { id } = await call(target, [
        'POST',
        routesOf(target),
        { pattern: `${nameOf(target, 'gone')}/*` },
      ]);
      const path = `${routesOf(target)}/${id}`;
      equal((await call(target, ['DELETE', path])).status, 200);
      deepEqual((await call(target, ['DELETE', path])).codes, [10009]);
    },
  },
  {
    name: 'refuses a pattern with a star inside the host or the path, or with a query',
    source: PATTERNS,
    async check(target) {
      for (const pattern of [
        `a.*.${nameOf(target, 'star')}/*`,
        `${nameOf(target, 'star')}/*/b`,
        `${nameOf(target, 'query')}/?a=b`,
      ]) {
        equal((await call(target, ['POST', routesOf(target), { pattern }])).status, 400, pattern);
      }
    },
  },
];
