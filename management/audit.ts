import { hash } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type InsertObject, sql } from 'kysely';
import { z } from 'zod';
import { givenId } from '../sites/manifest/schema.ts';
import { addressedObject, READS } from './access/rights.ts';
import type { Database, Tables } from './db/database.ts';
import { callerOf } from './http/auth.ts';

/** The code of a row whose request changed nothing, because it was a dry run. */
const DRY_RUN = 'dry_run';

/** The members of answers that name what was changed. */
const answered = z.object({
  id: z.uuid().optional(),
  container: z.uuid().optional(),
  clientId: z.uuid().nullish(),
  /** The client or organisation of a service token, a webhook or an accepted invitation. */
  client: z.uuid().nullish(),
  organisation: z.uuid().nullish(),
  revision: z.string().nullish(),
  code: z.string().optional(),
  /** Only in the answer to a dry run. */
  plan: z.object({}).optional(),
});
const inPath = z.object({ id: givenId.optional() });
/** The client that gets the containers of a transfer. */
const receiving = z.object({ to: z.uuid() });

/**
 * Records every mutation that an authenticated caller requests, also refused and malformed ones. If the caller has the
 * role that the route demands, a row is inserted before the body is read, and updated before the answer is sent. A row
 * without a status means that the process ended in between; the request's commit and events carry the row's request id.
 * A transfer has a row for each client. Without such a role, refusals are summed: one row for each hour, caller, action
 * and code. So no caller can grow the table without limit; neither can unauthenticated requests and those over the rate
 * limit, which are only in the request log. Called before `registerRights`, of which it records the refusals.
 */
export function registerAudit(api: FastifyInstance, db: Database): void {
  /** The rows of the requests that are recorded. */
  const rows = new WeakMap<FastifyRequest, string[]>();
  const known = (request: FastifyRequest) => {
    const { id } = inPath.safeParse(request.params).data ?? {};
    return {
      actor: callerOf(request).subject,
      action: request.routeOptions.schema?.operationId ?? `${request.method} ${request.routeOptions.url}`,
      request_id: request.id,
      ...subjectOf(request, id),
      ...ownerOf(request, id),
    };
  };
  const insert = async (request: FastifyRequest, of: Partial<InsertObject<Tables, 'audit_log'>> = {}) => {
    const { seq } = await db
      .insertInto('audit_log')
      .values({ ...known(request), ...of })
      .returning('seq')
      .executeTakeFirstOrThrow();
    rows.get(request)?.push(seq);
  };

  api.addHook('onRequest', async (request) => {
    if (!READS.includes(request.method)) rows.set(request, []);
  });

  api.addHook('preParsing', async (request) => {
    if (rows.has(request) && request.routeOptions.config.access !== 'self') await insert(request);
  });

  // A second row, so that admins of the receiving client read what it got, and from whom. Who may read it is judged by
  // the same rules as for the first row.
  api.addHook('preHandler', async (request) => {
    if (request.routeOptions.schema?.operationId !== 'transferContainers') return;
    const { id } = inPath.safeParse(request.params).data ?? {};
    const { to } = receiving.parse(request.body);
    if (to !== id) await insert(request, { ...subjectOf(request, undefined), client_id: to });
  });

  api.addHook('onSend', async (request, reply, payload) => {
    const seqs = rows.get(request);
    if (seqs === undefined) return payload;
    const {
      id,
      container,
      client,
      clientId = client,
      organisation,
      revision,
      code,
      plan,
    } = readAnswer(payload);
    const { statusCode: status } = reply;
    const answer = {
      status,
      code: code ?? (plan === undefined ? null : DRY_RUN),
      ...(revision ? { revision } : {}),
      ...subjectOf(request, container ?? (namesSubject(request) ? id : undefined)),
      ...(clientId ? { client_id: clientId } : {}),
      ...(organisation && !isOfClient(request) ? { organisation_id: organisation } : {}),
    };
    try {
      if (seqs.length > 0) {
        await db.updateTable('audit_log').set(answer).where('seq', 'in', seqs).execute();
      } else if (status < 400) await insert(request, answer);
      else await sumRefusal(request, { ...known(request), ...answer });
    } catch (err) {
      // An error's answer must not fail with the database: Fastify would answer in its place, with the error's text.
      if (status < 400) throw err;
      request.log.warn({ err }, 'the answer to a refused or failed request could not be audited');
    }
    return payload;
  });

  async function sumRefusal(request: FastifyRequest, row: InsertObject<Tables, 'audit_log'>): Promise<void> {
    const { actor, action, code } = row;
    // Of a client or organisation, only a member has these: so their number is bounded, and each client sees what was
    // refused in it. The rest of the address is the caller's choice.
    const isJudged =
      addressedObject(request) !== null &&
      (code === 'forbidden' || code === 'client_archived' || code === 'organisation_archived');
    const about = isJudged ? inPath.safeParse(request.params).data?.id : null;
    const digest = hash('sha256', JSON.stringify([actor, action, code, about]));
    await db
      .insertInto('audit_log')
      .values({ ...row, sums: sql`to_char(now() at time zone 'utc', 'YYYY-MM-DD HH24 ') || ${digest}` })
      .onConflict((conflict) => conflict.column('sums').doUpdateSet({ count: sql`audit_log.count + 1` }))
      .execute();
  }
}

function subjectOf({ routeOptions }: FastifyRequest, id: string | undefined) {
  if (id === undefined) return {};
  if (routeOptions.url?.startsWith('/server-containers')) return { container_id: id };
  if (routeOptions.url?.startsWith('/organisations')) return { organisation_id: id };
  return isOfClient({ routeOptions }) ? { client_id: id } : {};
}

/** Whether the request is about a client. Then the organisation in the answer is the client's. */
function isOfClient({ routeOptions }: Pick<FastifyRequest, 'routeOptions'>): boolean {
  return routeOptions.url?.startsWith('/clients') ?? false;
}

/**
 * Whether the `id` of the answer is that of a client, an organisation or a container. Below `/clients/:id`, it may be
 * an invitation's.
 */
function namesSubject({ routeOptions: { url = '' } }: FastifyRequest): boolean {
  return url === '/clients' || url === '/organisations' || url.startsWith('/server-containers');
}

/** The client or organisation of the webhook or token in the path, read before the request may delete it. */
function ownerOf({ routeOptions: { url = '' } }: FastifyRequest, id: string | undefined) {
  const table = url.startsWith('/webhooks/')
    ? 'webhooks'
    : url.startsWith('/tokens/')
      ? 'service_tokens'
      : null;
  if (id === undefined || table === null) return {};
  const of = (column: 'client_id' | 'organisation_id') =>
    sql<string>`(select ${sql.ref(column)} from ${sql.table(table)} where id = ${id}::uuid)`;
  return { client_id: of('client_id'), organisation_id: of('organisation_id') };
}

function readAnswer(payload: unknown): z.output<typeof answered> {
  if (typeof payload !== 'string') return {};
  return answered.safeParse(JSON.parse(payload)).data ?? {};
}
