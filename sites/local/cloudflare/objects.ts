import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { EmulatorContext } from './api/context.ts';
import { ApiError, success } from './api/envelope.ts';

const query = z.object({
  prefix: z.string().optional(),
  cursor: z.string().optional(),
  start_after: z.string().optional(),
  per_page: z.coerce.number().int().min(1).max(1000).default(20),
});
type OneObject = { Params: { bucket_name: string; '*': string } };

/** `/accounts/{account_id}/r2/buckets/{bucket_name}/objects` and `…/objects/{object_key}`. */
export function objectEndpoints(app: FastifyInstance, { bucket }: EmulatorContext): void {
  const path = '/accounts/:account_id/r2/buckets/:bucket_name/objects';

  app.get(path, async (request) => {
    const store = bucket(request.params);
    const { prefix, cursor, start_after: startAfter, per_page: limit } = query.parse(request.query);
    const page = await store.list({
      limit,
      ...(prefix === undefined ? {} : { prefix }),
      ...(cursor === undefined ? {} : { cursor }),
      ...(startAfter === undefined ? {} : { startAfter }),
    });
    const result = page.objects.map(({ key, size, etag, uploaded }) => ({
      key,
      size,
      etag,
      last_modified: uploaded.toISOString(),
      storage_class: 'Standard',
    }));
    return success(result, {
      per_page: limit,
      is_truncated: page.cursor !== undefined,
      ...(page.cursor === undefined ? {} : { cursor: page.cursor }),
    });
  });
  app.get<OneObject>(`${path}/*`, async ({ params }, reply) => {
    const text = await bucket(params).get(params['*']);
    if (text === null) throw new ApiError('unknownObject', 'The specified key does not exist.');
    return reply.type('application/octet-stream').send(Buffer.from(text));
  });
  app.put<OneObject>(`${path}/*`, async ({ params, body }) => {
    const key = params['*'];
    await bucket(params).put(key, textOf(body));
    return success({ key, storage_class: 'Standard' });
  });
  app.delete<OneObject>(`${path}/*`, async ({ params }) => {
    const key = params['*'];
    await bucket(params).delete(key);
    return success({ key });
  });
}

/** The text of a body. Fastify has already parsed a body whose content type is JSON. */
function textOf(body: unknown): string {
  if (Buffer.isBuffer(body)) return body.toString();
  return body === undefined || body === null ? '' : JSON.stringify(body);
}
