import assert from 'node:assert/strict';
import { z } from 'zod';
import type { Behaviour } from '../behaviour.ts';
import { assertRefused, type CloudflareTarget, call, createdId, succeed } from './target.ts';

const source = 'Cloudflare API';
const record = z.looseObject({
  id: z.string(),
  type: z.string(),
  name: z.string(),
  content: z.string(),
  ttl: z.number(),
  proxied: z.boolean(),
});

const pathOf = ({ zone }: CloudflareTarget) => `/zones/${zone.id}/dns_records`;
const nameOf = ({ prefix, zone }: CloudflareTarget, label: string) => `${label}.${prefix}.${zone.name}`;

/** Creates records, runs `work` with their ids and deletes them. */
async function withRecords(
  target: CloudflareTarget,
  records: readonly object[],
  work: (ids: string[]) => Promise<void>,
): Promise<void> {
  const ids: string[] = [];
  try {
    for (const one of records) ids.push(await createdId(target, 'POST', pathOf(target), one));
    await work(ids);
  } finally {
    for (const id of ids) await call(target, 'DELETE', `${pathOf(target)}/${id}`);
  }
}

async function namedRecords(target: CloudflareTarget, name: string) {
  return z.array(record).parse(await succeed(target, 'GET', `${pathOf(target)}?name=${name}`));
}

/** Rejects unless the second of two records is refused. */
function refusesSecond(first: object, second: object, code: number) {
  return async (target: CloudflareTarget) => {
    const name = nameOf(target, 'two');
    await withRecords(target, [{ name, ...first }], async () => {
      const refused = await call(target, 'POST', pathOf(target), { name, ...second });
      // Deletes a second record that was wrongly created.
      for (const { id, type } of await namedRecords(target, name)) {
        if (refused.status === 200 && type !== z.object({ type: z.string() }).parse(first).type) {
          await call(target, 'DELETE', `${pathOf(target)}/${id}`);
        }
      }
      assertRefused(refused, 400, code);
    });
  };
}

const A = { type: 'A', content: '192.0.2.1' };
const ALIAS = { type: 'CNAME', content: 'target.example.net' };

export const dnsBehaviours: readonly Behaviour<CloudflareTarget>[] = [
  { name: 'refuses an identical DNS record', source, check: refusesSecond(A, A, 81058) },
  { name: 'refuses an alias beside an address', source, check: refusesSecond(A, ALIAS, 81053) },
  { name: 'refuses an address beside an alias', source, check: refusesSecond(ALIAS, A, 81053) },
  {
    name: 'answers 81044 for a DNS record that is not there',
    source,
    async check(target) {
      const id = await createdId(target, 'POST', pathOf(target), { ...A, name: nameOf(target, 'gone') });
      await succeed(target, 'DELETE', `${pathOf(target)}/${id}`);
      assertRefused(await call(target, 'DELETE', `${pathOf(target)}/${id}`), 404, 81044);
    },
  },
  {
    name: 'gives a proxied record the automatic TTL',
    source,
    async check(target) {
      const name = nameOf(target, 'proxied');
      const edge = { type: 'AAAA', content: '100::', name, proxied: true, ttl: 300 };
      await withRecords(target, [edge], async () => {
        const [found] = await namedRecords(target, name);
        assert.deepEqual([found?.proxied, found?.ttl], [true, 1]);
      });
    },
  },
  {
    name: 'changes only what a PATCH names, and sets defaults for what a PUT lacks',
    source,
    async check(target) {
      const name = nameOf(target, 'changed');
      await withRecords(target, [{ ...A, name, ttl: 300, comment: 'mine' }], async ([id]) => {
        const patched = await succeed(target, 'PATCH', `${pathOf(target)}/${id}`, { content: '192.0.2.2' });
        assert.deepEqual(pick(patched), { content: '192.0.2.2', ttl: 300, comment: 'mine' });
        const put = await succeed(target, 'PUT', `${pathOf(target)}/${id}`, { ...A, name });
        assert.deepEqual(pick(put), { content: '192.0.2.1', ttl: 1, comment: null });
      });
    },
  },
  {
    name: 'carries out a batch as a whole or not at all',
    source,
    async check(target) {
      const name = nameOf(target, 'kept');
      await withRecords(target, [{ ...A, name }], async ([id]) => {
        const refused = await call(target, 'POST', `${pathOf(target)}/batch`, {
          deletes: [{ id }],
          posts: [
            { ...A, name: nameOf(target, 'good') },
            { type: 'A', name: nameOf(target, 'bad'), content: 'no address' },
          ],
        });
        assert.equal(refused.status, 400, refused.text);
        assert.deepEqual(
          (await namedRecords(target, name)).map((found) => found.id),
          [id],
        );
        assert.deepEqual(await namedRecords(target, nameOf(target, 'good')), []);
      });
    },
  },
  {
    name: 'deletes in a batch before it posts, so that one batch can replace an alias by an address',
    source,
    async check(target) {
      const name = nameOf(target, 'replaced');
      const alias = await createdId(target, 'POST', pathOf(target), { ...ALIAS, name });
      await succeed(target, 'POST', `${pathOf(target)}/batch`, {
        posts: [{ ...A, name }],
        deletes: [{ id: alias }],
      });
      const found = await namedRecords(target, name);
      for (const { id } of found) await call(target, 'DELETE', `${pathOf(target)}/${id}`);
      assert.deepEqual(
        found.map(({ type }) => type),
        ['A'],
      );
    },
  },
  {
    name: 'makes the content of a structured record from its data',
    source,
    async check(target) {
      const records = [
        { type: 'SRV', data: { priority: 10, weight: 5, port: 443, target: 'a.example.net' } },
        { type: 'CAA', data: { flags: 0, tag: 'issue', value: 'ca.example.net' } },
        { type: 'HTTPS', data: { priority: 1, target: '.', value: 'alpn="h2"' } },
      ].map((one, index) => ({ ...one, name: nameOf(target, `_s${index}._tcp`) }));
      await withRecords(target, records, async () => {
        for (const { type, name } of records) {
          const [found] = await namedRecords(target, name);
          assert.equal(found?.type, type);
          assert.notEqual(found?.content, '');
        }
      });
    },
  },
  {
    name: 'states the number of all records in every page of a list',
    source,
    async check(target) {
      const records = [1, 2, 3].map((last) => ({
        type: 'A',
        name: nameOf(target, 'paged'),
        content: `192.0.2.${last}`,
      }));
      await withRecords(target, records, async (ids) => {
        const seen: string[] = [];
        for (const page of [1, 2]) {
          const query = `?name=${nameOf(target, 'paged')}&per_page=2&page=${page}`;
          const { json } = await call(target, 'GET', `${pathOf(target)}${query}`);
          assert.equal(json?.result_info?.total_count, 3);
          seen.push(
            ...z
              .array(record)
              .parse(json?.result)
              .map(({ id }) => id),
          );
        }
        assert.deepEqual(seen.toSorted(), ids.toSorted());
      });
    },
  },
  {
    name: 'finds a zone by its name, also with one zone in a page',
    source,
    async check(target) {
      const zones = await succeed(target, 'GET', `/zones?name=${target.zone.name}&per_page=1`);
      assert.deepEqual(
        z
          .array(z.object({ id: z.string() }))
          .parse(zones)
          .map(({ id }) => id),
        [target.zone.id],
      );
    },
  },
  {
    name: 'says in every answer how many calls are left',
    source,
    async check(target) {
      const { headers } = await call(target, 'GET', `/zones/${target.zone.id}`);
      assert.match(headers.get('ratelimit') ?? '', /"default";\s*r=\d+;\s*t=\d+/);
    },
  },
];

function pick(answer: unknown) {
  const { content, ttl, comment } = record.extend({ comment: z.string().nullish() }).parse(answer);
  return { content, ttl, comment: comment || null };
}
