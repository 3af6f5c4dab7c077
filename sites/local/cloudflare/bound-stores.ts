import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { EmulatorContext } from './api/context.ts';
import { ApiError, page, success } from './api/envelope.ts';
import { newId } from './api/state.ts';

const bucketRow = z.object({ name: z.string(), created_on: z.string() });
const bucketInput = z.object({ name: z.string().regex(/^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/) });

/** `/accounts/{account_id}/r2/buckets`: only that they exist. `objects.ts` has the content of the edge's own. */
export function bucketEndpoints(app: FastifyInstance, { db, account, now }: EmulatorContext): void {
  const path = '/accounts/:account_id/r2/buckets';
  app.get(path, ({ params }) => {
    account(params);
    const rows = db.prepare('SELECT * FROM buckets ORDER BY name').all();
    return success({
      buckets: rows.map((row) => {
        const { name, created_on: creation_date } = bucketRow.parse(row);
        return { name, creation_date };
      }),
    });
  });
  app.post(path, ({ params, body }) => {
    account(params);
    const parsed = bucketInput.safeParse(body);
    if (!parsed.success) throw new ApiError('malformedBody', 'The bucket name is not valid.');
    const { name } = parsed.data;
    if (db.prepare('SELECT 1 FROM buckets WHERE name = ?').get(name) !== undefined) {
      throw new ApiError('bucketExists', 'The bucket you tried to create already exists, and you own it.');
    }
    const date = now().toISOString();
    db.prepare('INSERT INTO buckets VALUES (?, ?)').run(name, date);
    return success({ name, creation_date: date });
  });
}

const queueRow = z.object({ id: z.string(), name: z.string(), created_on: z.string() });
const queueInput = z.object({ queue_name: z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/) });
const consumerRow = z.object({ id: z.string(), script: z.string(), body: z.string() });
const consumerInput = z.looseObject({ type: z.literal('worker'), script_name: z.string() });
const oneQueue = z.object({ queue_id: z.string() });

/** `/accounts/{account_id}/queues` and their consumers: only that they exist. The edge has its own queue. */
export function queueEndpoints(app: FastifyInstance, { db, account, now, scripts }: EmulatorContext): void {
  const path = '/accounts/:account_id/queues';
  const describe = (row: unknown) => {
    const { id: queue_id, name: queue_name, created_on } = queueRow.parse(row);
    return { queue_id, queue_name, created_on, modified_on: created_on };
  };
  const list = () => db.prepare('SELECT * FROM queues ORDER BY name').all().map(describe);

  app.get(path, ({ params }) => {
    account(params);
    return page(list(), 1, 100);
  });
  app.post(path, ({ params, body }) => {
    account(params);
    const parsed = queueInput.safeParse(body);
    if (!parsed.success) throw new ApiError('malformedBody', 'The queue name is not valid.');
    const { queue_name: name } = parsed.data;
    if (list().some(({ queue_name }) => queue_name === name)) {
      throw new ApiError('queueExists', `Queue name '${name}' is already taken.`);
    }
    const row = { id: newId(), name, created_on: now().toISOString() };
    db.prepare('INSERT INTO queues VALUES (?, ?, ?)').run(row.id, row.name, row.created_on);
    return success(describe(row));
  });

  function queueOf(params: unknown): string {
    account(params);
    const { queue_id: id } = oneQueue.parse(params);
    if (list().some(({ queue_id }) => queue_id === id)) return id;
    throw new ApiError('unknownQueue', 'Queue not found.');
  }
  app.get(`${path}/:queue_id/consumers`, ({ params }) => {
    const rows = db.prepare('SELECT * FROM consumers WHERE queue = ?').all(queueOf(params));
    return success(
      rows.map((row) => {
        const { id: consumer_id, script, body } = consumerRow.parse(row);
        return { ...z.looseObject({}).parse(JSON.parse(body)), consumer_id, script };
      }),
    );
  });
  app.post(`${path}/:queue_id/consumers`, ({ params, body }) => {
    const queue = queueOf(params);
    const parsed = consumerInput.safeParse(body);
    if (!parsed.success) throw new ApiError('malformedBody', 'A consumer needs a worker.');
    const { script_name: script } = parsed.data;
    if (scripts.find(script) === null) throw new ApiError('unknownScript', 'This Worker does not exist.');
    if (db.prepare('SELECT 1 FROM consumers WHERE queue = ?').get(queue) !== undefined) {
      throw new ApiError('consumerExists', 'Queue already has a consumer.');
    }
    const id = newId();
    db.prepare('INSERT INTO consumers VALUES (?, ?, ?, ?)').run(
      id,
      queue,
      script,
      JSON.stringify(parsed.data),
    );
    return success({ ...parsed.data, consumer_id: id, script });
  });
}
