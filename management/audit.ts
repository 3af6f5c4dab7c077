import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { callerOf } from './http/auth.ts';
import type { Database } from './db/database.ts';

const READS: readonly string[] = ['GET', 'HEAD', 'OPTIONS'];

/** As far as answers tell what was done. */
const answered = z.object({
  id: z.uuid().optional(),
  container: z.uuid().optional(),
  clientId: z.uuid().optional(),
  revision: z.string().nullish(),
  code: z.string().optional(),
});
const inPath = z.object({ id: z.uuid().optional() });

/**
 * Every mutation that a known caller asks for, refused and malformed ones too: a row before the body is even read,
 * filled in before the answer leaves. A row without a status is of a process that ended in between; commit and events
 * bear its request id. Not recorded, but in the request log: callers that nobody knows, and who is over the rate limit,
 * which bounds what a caller can make the log grow by.
 */
export function registerAudit(api: FastifyInstance, db: Database): void {
  const rows = new WeakMap<FastifyRequest, string>();

  api.addHook('onRequest', async (request) => {
    if (READS.includes(request.method)) return;
    const { seq } = await db
      .insertInto('audit_log')
      .values({
        actor: callerOf(request).subject,
        action: request.routeOptions.schema?.operationId ?? `${request.method} ${request.routeOptions.url}`,
        request_id: request.id,
        ...aboutOf(request, inPath.safeParse(request.params).data?.id),
      })
      .returning('seq')
      .executeTakeFirstOrThrow();
    rows.set(request, seq);
  });

  api.addHook('onSend', async (request, reply, payload) => {
    const seq = rows.get(request);
    if (seq === undefined) return payload;
    const { id, container, clientId, revision, code } = read(payload);
    await db
      .updateTable('audit_log')
      .set({
        status: reply.statusCode,
        code: code ?? null,
        ...(revision ? { revision } : {}),
        ...aboutOf(request, container ?? id),
        ...(clientId === undefined ? {} : { client_id: clientId }),
      })
      .where('seq', '=', seq)
      .execute();
    return payload;
  });
}

function aboutOf({ routeOptions }: FastifyRequest, id: string | undefined) {
  if (id === undefined) return {};
  return routeOptions.url?.startsWith('/clients') ? { client_id: id } : { container_id: id };
}

function read(payload: unknown): z.output<typeof answered> {
  if (typeof payload !== 'string') return {};
  return answered.safeParse(JSON.parse(payload)).data ?? {};
}
