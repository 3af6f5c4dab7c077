import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { EmulatorContext } from '../api/context.ts';
import { ApiError, success } from '../api/envelope.ts';
import { checkKey, checkPair, listed } from './values.ts';

const MAX_PAIRS = 10_000;

const pairs = z
  .array(
    z.object({
      key: z.string(),
      value: z.string(),
      base64: z.boolean().default(false),
      metadata: z.record(z.string(), z.unknown()).optional(),
      expiration: z.number().optional(),
      expiration_ttl: z.number().optional(),
    }),
  )
  .max(MAX_PAIRS);
const keys = z.array(z.string()).max(MAX_PAIRS);
const bulkGet = z.object({
  keys: z.array(z.string()).max(100),
  type: z.enum(['text', 'json']).default('text'),
  withMetadata: z.boolean().default(false),
});
const listQuery = z.object({
  limit: z.coerce.number().int().min(10).max(1000).default(1000),
  prefix: z.string().optional(),
  cursor: z.string().optional(),
});

function parse<T>(schema: z.ZodType<T>, input: unknown): T {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new ApiError('malformedBody', `${issue?.path.join('.')}: ${issue?.message}`);
}

/** `bulk`, `bulk/delete`, `bulk/get` and `keys` of a namespace. */
export function kvBulkEndpoints(app: FastifyInstance, { store, kvWrites }: EmulatorContext): void {
  const base = '/accounts/:account_id/storage/kv/namespaces/:namespace_id';

  /** Writes the items whose keys may be written now, and returns the keys of the others. */
  async function writeEach<Item extends { key: string }>(
    params: unknown,
    items: readonly Item[],
    write: (item: Item) => Promise<void>,
  ) {
    const mayWrite = kvWrites(params);
    // If a key occurs twice in one call, its last value counts.
    const last = new Map(items.map((item) => [item.key, item]));
    const unsuccessful: string[] = [];
    for (const item of last.values()) {
      if (mayWrite(item.key)) await write(item);
      else unsuccessful.push(item.key);
    }
    return { successful_key_count: last.size - unsuccessful.length, unsuccessful_keys: unsuccessful };
  }

  app.put(`${base}/bulk`, async ({ params, body }) => {
    const target = store(params);
    const written = parse(pairs, body).map(({ base64, ...pair }) => ({
      ...pair,
      value: base64 ? Buffer.from(pair.value, 'base64').toString() : pair.value,
    }));
    for (const { key, value, metadata, expiration_ttl: ttl } of written) checkPair(key, value, metadata, ttl);
    const outcome = await writeEach(params, written, (pair) =>
      target.put(pair.key, pair.value, {
        ...(pair.metadata === undefined ? {} : { metadata: pair.metadata }),
        ...(pair.expiration === undefined ? {} : { expiration: pair.expiration }),
        ...(pair.expiration_ttl === undefined ? {} : { expirationTtl: pair.expiration_ttl }),
      }),
    );
    return success(outcome);
  });

  async function remove(params: unknown, body: unknown) {
    const target = store(params);
    const removed = parse(keys, body).map((key) => ({ key }));
    for (const { key } of removed) checkKey(key);
    return await writeEach(params, removed, ({ key }) => target.delete(key));
  }
  app.post(`${base}/bulk/delete`, async ({ params, body }) => success(await remove(params, body)));
  app.delete(`${base}/bulk`, async ({ params, body }) => {
    await remove(params, body);
    return success({});
  });

  app.post(`${base}/bulk/get`, async ({ params, body }) => {
    const target = store(params);
    const wanted = parse(bulkGet, body);
    const values = await Promise.all(
      wanted.keys.map(async (key) => {
        const text = await target.get(key);
        const value: unknown = text !== null && wanted.type === 'json' ? JSON.parse(text) : text;
        if (!wanted.withMetadata || text === null) return [key, value] as const;
        return [key, { value, metadata: (await listed(target, key))?.metadata ?? null }] as const;
      }),
    );
    return success({ values: Object.fromEntries(values) });
  });

  app.get(`${base}/keys`, async ({ params, query }) => {
    const { limit, prefix, cursor } = parse(listQuery, query);
    const list = await store(params).list({
      limit,
      ...(prefix === undefined ? {} : { prefix }),
      ...(cursor === undefined || cursor === '' ? {} : { cursor }),
    });
    return success(list.keys, { count: list.keys.length, cursor: list.complete ? '' : (list.cursor ?? '') });
  });
}
