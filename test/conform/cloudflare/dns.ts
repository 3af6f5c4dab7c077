import { deepEqual, equal } from 'node:assert/strict';
import type { Behaviour } from '../behaviour.ts';
import { call, nameOf, recordsOf, refused } from './call.ts';
import type { CloudflareTarget } from './target.ts';

const SOURCE = 'Cloudflare API';

const address = (name: string, content = '192.0.2.1') => ({ type: 'A', name, content });
const alias = (name: string, content = 'origin.example') => ({ type: 'CNAME', name, content });

async function create(target: CloudflareTarget, record: object): Promise<string> {
  const { status, id } = await call(target, ['POST', recordsOf(target), record]);
  equal(status, 200, 'the record is not created');
  return id;
}

export const dnsBehaviours: readonly Behaviour<CloudflareTarget>[] = [
  {
    name: 'refuses an identical DNS record with 81058',
    source: SOURCE,
    async check(target) {
      const record = address(nameOf(target, 'identical'));
      await create(target, record);
      refused(await call(target, ['POST', recordsOf(target), record]), [400, 81058]);
    },
  },
  {
    name: 'allows several addresses for a name',
    source: SOURCE,
    async check(target) {
      const name = nameOf(target, 'several');
      await create(target, address(name));
      await create(target, address(name, '192.0.2.2'));
    },
  },
  {
    name: 'refuses an alias beside an address, and an address beside an alias, with 81053',
    source: SOURCE,
    async check(target) {
      const [one, other] = [nameOf(target, 'address'), nameOf(target, 'alias')];
      await create(target, address(one));
      refused(await call(target, ['POST', recordsOf(target), alias(one)]), [400, 81053]);
      await create(target, alias(other));
      refused(await call(target, ['POST', recordsOf(target), address(other)]), [400, 81053]);
    },
  },
  {
    name: 'answers 81044 for a DNS record that was deleted',
    source: SOURCE,
    async check(target) {
      const path = `${recordsOf(target)}/${await create(target, address(nameOf(target, 'gone')))}`;
      equal((await call(target, ['DELETE', path])).status, 200);
      for (const method of ['GET', 'DELETE']) refused(await call(target, [method, path]), [404, 81044]);
    },
  },
  {
    name: 'gives a proxied record the automatic TTL',
    source: SOURCE,
    async check(target) {
      const record = { ...address(nameOf(target, 'proxied')), proxied: true, ttl: 300 };
      const { result } = await call(target, ['POST', recordsOf(target), record]);
      deepEqual((result as { ttl: number } | null)?.ttl, 1); // a record has it
    },
  },
  {
    name: 'carries out a DNS batch as a whole or not at all, deletes first',
    source: SOURCE,
    async check(target) {
      const [name, other] = [nameOf(target, 'batch'), nameOf(target, 'batch-other')];
      const old = await create(target, address(name));
      const batch = `${recordsOf(target)}/batch`;
      const broken = { deletes: [{ id: old }], posts: [address(other), address(name, 'no address')] };
      equal((await call(target, ['POST', batch, broken])).status, 400);
      equal((await call(target, ['GET', `${recordsOf(target)}/${old}`])).status, 200, 'it is deleted');
      const found = await call(target, ['GET', `${recordsOf(target)}?name=${other}`]);
      deepEqual(found.result, [], 'a part of the batch is created');
      // An alias may take the place of the address only where the delete comes first.
      const replacement = { deletes: [{ id: old }], posts: [alias(name)] };
      equal((await call(target, ['POST', batch, replacement])).status, 200);
    },
  },
];
