import type { FastifyInstance } from 'fastify';
import type { EmulatorContext } from './api/context.ts';
import { success } from './api/envelope.ts';
import { accountId } from './api/state.ts';

/** The emulated edge sends its requests from loopback, so these are the ranges that a proxy may trust. */
const ADDRESSES = { ipv4_cidrs: ['127.0.0.0/8'], ipv6_cidrs: ['::1/128'], etag: 'local' };

/** `/ips`, `/accounts` and `/user/tokens/verify`. */
export function accountEndpoints(app: FastifyInstance, { db }: EmulatorContext): void {
  app.get('/ips', () => success(ADDRESSES));
  app.get('/accounts', () => {
    const id = accountId(db);
    const page = { page: 1, per_page: 20, count: 1, total_count: 1 };
    return success([{ id, name: 'embedded', type: 'standard' }], page);
  });
  app.get('/user/tokens/verify', () => success({ id: accountId(db), status: 'active' }));
}
