import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { EmulatorContext } from '../api/context.ts';
import { ApiError, page, success } from '../api/envelope.ts';
import { ensureNamespace, listNamespaces } from '../api/state.ts';

const query = z.object({
  page: z.coerce.number().int().min(1).default(1),
  per_page: z.coerce.number().int().min(5).max(100).default(20),
});
const input = z.object({ title: z.string().min(1).max(512) });

/** `/accounts/{account_id}/storage/kv/namespaces`: list and create. */
export function namespaceEndpoints(app: FastifyInstance, { db, account }: EmulatorContext): void {
  const path = '/accounts/:account_id/storage/kv/namespaces';
  const describe = (namespace: object) => ({ ...namespace, supports_url_encoding: true });

  app.get(path, (request) => {
    account(request.params);
    const parsed = query.safeParse(request.query);
    if (!parsed.success) throw new ApiError('invalidKv', 'Invalid list parameters.');
    return page(listNamespaces(db).map(describe), parsed.data.page, parsed.data.per_page);
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
}
