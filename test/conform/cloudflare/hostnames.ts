import assert from 'node:assert/strict';
import { z } from 'zod';
import type { Behaviour } from '../behaviour.ts';
import { assertRefused, type CloudflareTarget, call, createdId, succeed } from './target.ts';

const source = 'Cloudflare API';
const hostname = z.looseObject({ status: z.string(), ssl: z.looseObject({ status: z.string() }) });

/** Runs `work` with a custom hostname below example.com (so it is never validated), then deletes it. */
function withHostname(work: (target: CloudflareTarget, id: string, name: string) => Promise<void>) {
  return async (target: CloudflareTarget) => {
    const path = `/zones/${target.zone.id}/custom_hostnames`;
    const name = `${target.prefix}.example.com`;
    const id = await createdId(target, 'POST', path, { hostname: name, ssl: { method: 'txt', type: 'dv' } });
    try {
      await work(target, id, name);
    } finally {
      await call(target, 'DELETE', `${path}/${id}`);
    }
  };
}

export const hostnameBehaviours: readonly Behaviour<CloudflareTarget>[] = [
  {
    name: 'keeps a custom hostname pending until it is validated',
    source,
    check: withHostname(async (target, id) => {
      const path = `/zones/${target.zone.id}/custom_hostnames/${id}`;
      const { status, ssl } = hostname.parse(await succeed(target, 'GET', path));
      assert.equal(status, 'pending');
      assert.match(ssl.status, /^(initializing|pending_)/);
    }),
  },
  {
    name: 'refuses a second custom hostname of one name',
    source,
    check: withHostname(async (target, _id, name) => {
      const again = { hostname: name, ssl: { method: 'txt', type: 'dv' } };
      const refused = await call(target, 'POST', `/zones/${target.zone.id}/custom_hostnames`, again);
      assertRefused(refused, 409, 1406);
    }),
  },
];
