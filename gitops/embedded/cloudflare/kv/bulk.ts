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
export function kvBulkEndpoints(app: FastifyInstance, { store }: EmulatorContext): void {
  const base = '/accounts/:account_id/storage/kv/namespaces/:namespace_id';
  const done = (count: number) => success({ successful_key_count: count, unsuccessful_keys: [] });

  app.put(`${base}/bulk`, async ({ params, body }) => {
    const target = store(params);
    const written = parse(pairs, body).map(({ base64, ...pair }) => ({
      ...pair,
      value: base64 ? Buffer.from(pair.value, 'base64').toString() : pair.value,
    }));
    for (const { key, value, metadata, expiration_ttl: ttl } of written) checkPair(key, value, metadata, ttl);
    for (const { key, value, metadata, expiration, expiration_ttl: ttl } of written) {
      await target.put(key, value, {
        ...(metadata === undefined ? {} : { metadata }),
        ...(expiration === undefined ? {} : { expiration }),
        ...(ttl === undefined ? {} : { expirationTtl: ttl }),
      });
    }
    return done(written.length);
  });

  async function remove(params: unknown, body: unknown) {
    const target = store(params);
    const removed = parse(keys, body);
    for (const key of removed) checkKey(key);
    for (const key of removed) await target.delete(key);
    return done(removed.length);
  }
  app.post(`${base}/bulk/delete`, ({ params, body }) => remove(params, body));
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
