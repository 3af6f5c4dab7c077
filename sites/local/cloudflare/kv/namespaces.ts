import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { EmulatorContext } from '../api/context.ts';
import { ApiError, page, success } from '../api/envelope.ts';
import { ensureNamespace, listNamespaces } from '../api/state.ts';

const query = z.object({
  page: z.coerce.number().int().min(1).default(1),
  // Cloudflare's OpenAPI document says at most 100, but clients ask for 1,000 and get them.
  per_page: z.coerce.number().int().min(1).max(1000).default(20),
  order: z.enum(['id', 'title']).default('title'),
  direction: z.enum(['asc', 'desc']).default('asc'),
});
type One = { Params: { namespace_id: string } };
const input = z.object({ title: z.string().min(1).max(512) });

/** `/accounts/{account_id}/storage/kv/namespaces`. */
export function namespaceEndpoints(app: FastifyInstance, { db, account }: EmulatorContext): void {
  const path = '/accounts/:account_id/storage/kv/namespaces';
  const describe = (namespace: object) => ({ ...namespace, supports_url_encoding: true });

  app.get(path, (request) => {
    account(request.params);
    const parsed = query.safeParse(request.query);
    if (!parsed.success) throw new ApiError('invalidKv', 'Invalid list parameters.');
    const { page: number, per_page: perPage, order, direction } = parsed.data;
    const sign = direction === 'asc' ? 1 : -1;
    const sorted = listNamespaces(db).sort((a, b) => (a[order] < b[order] ? -sign : sign));
    return page(sorted.map(describe), number, perPage);
  });
  app.post(path, ({ params, body }) => {
    account(params);
    const parsed = input.safeParse(body);
    if (!parsed.success) throw new ApiError('malformedBody', 'A namespace needs a title.');
    if (listNamespaces(db).some(({ title }) => title === parsed.data.title)) {
      throw new ApiError('namespaceExists', 'a namespace with this account ID and title already exists');
    }
    return success(describe(ensureNamespace(db, parsed.data.title)));
  });

  function find(params: One['Params']) {
    account(params);
    const found = listNamespaces(db).find(({ id }) => id === params.namespace_id);
    if (found === undefined) throw new ApiError('unknownNamespace', 'namespace not found');
    return found;
  }
  app.get<One>(`${path}/:namespace_id`, ({ params }) => success(describe(find(params))));
  app.put<One>(`${path}/:namespace_id`, ({ params, body }) => {
    const { id } = find(params);
    const parsed = input.safeParse(body);
    if (!parsed.success) throw new ApiError('malformedBody', 'A namespace needs a title.');
    const { title } = parsed.data;
    if (listNamespaces(db).some((other) => other.title === title && other.id !== id)) {
      throw new ApiError('namespaceExists', 'a namespace with this account ID and title already exists');
    }
    db.prepare('UPDATE namespaces SET title = ? WHERE id = ?').run(title, id);
    return success({});
  });
  app.delete<One>(`${path}/:namespace_id`, ({ params }) => {
    const { id } = find(params);
    for (const table of ['kv', 'kv_pending']) db.prepare(`DELETE FROM ${table} WHERE namespace = ?`).run(id);
    db.prepare('DELETE FROM namespaces WHERE id = ?').run(id);
    return success({});
  });
}
