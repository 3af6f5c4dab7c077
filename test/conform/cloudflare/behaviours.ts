import assert from 'node:assert/strict';
import { z } from 'zod';
import type { Behaviour } from '../behaviour.ts';

export interface CloudflareTarget {
  /** The API's base URL. */
  readonly url: string;
  readonly token: string;
  readonly zone: { readonly id: string; readonly name: string };
  readonly account: string;
  /** Every name that a behaviour uses must contain it. */
  readonly prefix: string;
}

const refusal = z.object({ errors: z.array(z.object({ code: z.number() })).min(1) });
const created = z.object({ result: z.object({ id: z.string() }) });

async function call({ url, token }: CloudflareTarget, method: string, path: string, body?: object) {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, json: (await response.json()) as unknown };
}

export const cloudflareBehaviours: readonly Behaviour<CloudflareTarget>[] = [
  {
    name: 'refuses an identical DNS record',
    source: 'Cloudflare API',
    async check(target) {
      const path = `/zones/${target.zone.id}/dns_records`;
      const record = { type: 'A', name: `twice.${target.prefix}.${target.zone.name}`, content: '192.0.2.1' };
      const first = await call(target, 'POST', path, record);
      assert.equal(first.status, 200);
      const second = await call(target, 'POST', path, record);
      assert.equal(second.status, 400);
      assert.equal(refusal.parse(second.json).errors[0]?.code, 81058);
    },
  },
  {
    name: 'answers 81044 for a DNS record that is not there',
    source: 'Cloudflare API',
    async check(target) {
      const path = `/zones/${target.zone.id}/dns_records`;
      const record = { type: 'A', name: `gone.${target.prefix}.${target.zone.name}`, content: '192.0.2.1' };
      const { result } = created.parse((await call(target, 'POST', path, record)).json);
      await call(target, 'DELETE', `${path}/${result.id}`);
      const again = await call(target, 'DELETE', `${path}/${result.id}`);
      assert.equal(refusal.parse(again.json).errors[0]?.code, 81044);
    },
  },
];
