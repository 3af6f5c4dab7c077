import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { EmulatorContext } from '../api/context.ts';
import { ApiError, success } from '../api/envelope.ts';
import type { KvStore } from '../api/stores.ts';

const MAX_KEY_BYTES = 512;
const MAX_VALUE_BYTES = 25 * 1024 * 1024;
const MAX_METADATA_BYTES = 1024;
const MIN_EXPIRATION_SECONDS = 60;

/** Throws for what the real store rejects (source: Workers KV documentation, "ApiLimits"). */
export function checkPair(key: string, value: string, metadata: unknown, ttl: number | undefined): void {
  checkKey(key);
  if (Buffer.byteLength(value) > MAX_VALUE_BYTES)
    throw new ApiError('invalidKv', 'value is larger than 25 MiB');
  if (metadata !== undefined && Buffer.byteLength(JSON.stringify(metadata)) > MAX_METADATA_BYTES) {
    throw new ApiError('invalidKv', 'metadata is larger than 1024 bytes');
  }
  if (ttl !== undefined && ttl < MIN_EXPIRATION_SECONDS) {
    throw new ApiError('invalidKv', 'expiration_ttl must be at least 60 seconds');
  }
}

export function checkKey(key: string): void {
  if (key === '' || key === '.' || key === '..' || Buffer.byteLength(key) > MAX_KEY_BYTES) {
    throw new ApiError('invalidKv', 'a key has 1 to 512 bytes and is neither . nor ..');
  }
}

/** The list entry of a key, or `undefined` if it doesn't exist. The key itself sorts first among names that begin with it. */
export async function listed(store: KvStore, key: string) {
  const { keys } = await store.list({ prefix: key, limit: 1 });
  return keys[0]?.name === key ? keys[0] : undefined;
}

const putQuery = z.object({
  expiration: z.coerce.number().optional(),
  expiration_ttl: z.coerce.number().optional(),
});
const metadataText = z
  .string()
  .transform((text) => z.record(z.string(), z.unknown()).parse(JSON.parse(text)));

/** `values/{key_name}` and `metadata/{key_name}` of a namespace. */
export function kvValueEndpoints(app: FastifyInstance, { store, kvWrites }: EmulatorContext): void {
  const base = '/accounts/:account_id/storage/kv/namespaces/:namespace_id';
  type Key = { Params: { key_name: string } };

  function refuseBusy(params: Key['Params']): void {
    if (!kvWrites(params)(params.key_name)) {
      throw new ApiError('keyBusy', 'Too many requests: a key takes one write a second');
    }
  }

  app.get<Key>(`${base}/values/:key_name`, async ({ params }, reply) => {
    const value = await store(params).get(params.key_name);
    if (value === null) throw new ApiError('unknownKey', "get: 'key not found'");
    return reply.type('application/octet-stream').send(Buffer.from(value));
  });
  app.put<Key>(`${base}/values/:key_name`, async ({ params, body, query, headers }) => {
    const { expiration, expiration_ttl: ttl } = putQuery.parse(query);
    const { value, metadata } = await readValue(body, headers['content-type'] ?? '');
    checkPair(params.key_name, value, metadata, ttl);
    refuseBusy(params);
    await store(params).put(params.key_name, value, {
      ...(metadata === undefined ? {} : { metadata }),
      ...(expiration === undefined ? {} : { expiration }),
      ...(ttl === undefined ? {} : { expirationTtl: ttl }),
    });
    return success({});
  });
  app.delete<Key>(`${base}/values/:key_name`, async ({ params }) => {
    checkKey(params.key_name);
    refuseBusy(params);
    await store(params).delete(params.key_name);
    return success({});
  });
  app.get<Key>(`${base}/metadata/:key_name`, async ({ params }) => {
    const key = await listed(store(params), params.key_name);
    if (key === undefined) throw new ApiError('unknownKey', "get: 'key not found'");
    return success(key.metadata ?? {});
  });
}

/** The body is the value, or a form with `value` and `metadata`. The content type parser has already parsed JSON. */
async function readValue(body: unknown, contentType: string) {
  if (!(body instanceof Buffer))
    return { value: body === undefined ? '' : JSON.stringify(body), metadata: undefined };
  if (!contentType.startsWith('multipart/form-data')) return { value: body.toString(), metadata: undefined };
  const form = await new Response(new Uint8Array(body), {
    headers: { 'content-type': contentType },
  }).formData();
  const value = form.get('value');
  const metadata = form.get('metadata');
  if (value === null) throw new ApiError('malformedBody', 'the form has no value');
  return {
    value: typeof value === 'string' ? value : await value.text(),
    metadata: typeof metadata === 'string' ? metadataText.parse(metadata) : undefined,
  };
}
