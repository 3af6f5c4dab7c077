import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { sql } from 'kysely';
import { z } from 'zod';
import { demandAnyContainer, demandContainer } from '../access/containers.ts';
import { demandRoleIn, isOperator } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { visibleClients } from '../records/memberships.repository.ts';
import { keyFrom, listPage, pageQuery, pageSchema } from '../view/page.ts';
import { probesQuery } from '../view/probes.ts';
import { dayAt, daysBefore } from './calendar.ts';
import { areOfHours, type LocalDay, localDate, localDays, TimeZoneError } from './local-days.ts';
import { missingIn, presentRange } from './points.ts';
import { edgeOperations, listPrice } from './prices.ts';
import { rangeList } from './traffic.schema.ts';
import { listUsage, type UsageRow } from './usage.ts';

const MOST_DAYS = 400;
/** Dates are compared as text, so their years must have four digits, also in time zones ahead of UTC. */
const YEARS = { first: '1970-01-02', last: '9998-12-31' };
const HOUR = 3_600;
const DAY = 86_400;

const usageQuery = z.strictObject({
  ...pageQuery,
  client: z.uuid().optional(),
  container: z.uuid().optional(),
  from: z.iso.date().optional().meta({ description: 'the first day; default: 30 days before `to`' }),
  to: z.iso.date().optional().meta({ description: 'the last day; default: today' }),
  timeZone: z.string().max(64).default('UTC').meta({
    description:
      'the zone whose days are listed, such as `Europe/Berlin`; in zones other than UTC, a day is known only while its hourly sums are kept; `missing` has the times that are not known',
  }),
  probes: probesQuery,
});

const operations = z.int();
const usageItem = z
  .object({
    day: z.iso.date(),
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    client: z.uuid().meta({ description: 'the client that has the container now' }),
    clientId: z.uuid().meta({ description: 'the same as `client`', deprecated: true }),
    containerId: z.uuid(),
    requests: z.int(),
    events: z.int(),
    bytesIn: z.int(),
    bytesOut: z.int(),
    edgeOperations: z
      .object({
        requests: operations,
        kvReads: operations,
        kvWrites: operations,
        queueOperations: operations,
        r2Writes: operations,
      })
      .meta({
        description:
          'the requests to the worker, and the other operations that these requests cause in usual visits',
      }),
    listPrice: z
      .number()
      .meta({ description: 'US dollars for these operations at Cloudflare’s list prices' }),
    warnings: z
      .array(z.enum(['requests', 'events']))
      .meta({ description: 'soft limits that were exceeded; nothing is stopped' }),
  })
  .meta({ id: 'Usage' });

const usagePage = pageSchema(usageItem).extend({ missing: rangeList }).meta({ id: 'UsagePage' });

const usageKey = z.tuple([z.iso.date(), z.uuid(), z.uuid()]);

/** What each container has used by day. */
export function usageRoutes(context: Context): FastifyPluginAsyncZod {
  const { db, clock, settings } = context;

  function present({ day, client, container, ...sums }: UsageRow, { from, to }: LocalDay) {
    const requests = Number(sums.requests);
    const events = Number(sums.events);
    const used = edgeOperations(requests);
    const { softLimits } = settings.traffic;
    const warnings = (['requests', 'events'] as const).filter((name) => {
      const most = softLimits[name];
      return most !== null && { requests, events }[name] > most;
    });
    return {
      day,
      from: from.toISOString(),
      to: to.toISOString(),
      client,
      clientId: client,
      containerId: container,
      requests,
      events,
      bytesIn: Number(sums.bytes_in),
      bytesOut: Number(sums.bytes_out),
      edgeOperations: used,
      listPrice: listPrice(used),
      warnings,
    };
  }

  return async (app) => {
    app.get(
      '/usage',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'listUsage',
          summary: 'List what each container has used by day, with its list price at the edge',
          description:
            'Days without requests are not listed; `missing` has the times of which not everything is known.',
          tags: ['traffic'],
          querystring: usageQuery,
          response: { 200: usagePage, ...problems('invalid_request', 'unknown_client', 'unknown_container') },
        },
      },
      async (request) => {
        const caller = callerOf(request);
        const { client, container = null, timeZone, limit, cursor, probes } = request.query;
        const sees = isOperator(context, caller);
        if (client !== undefined)
          await demandRoleIn(context, { kind: 'clients', id: client }, caller, 'read');
        if (container !== null) {
          if (sees) await demandAnyContainer(db, container);
          else await demandContainer(db, container, caller, 'read');
        }
        const days = daysOf(request.query, clock.date().getTime());
        const span = timeZone === 'UTC' ? DAY : HOUR;
        const own = sees ? null : sql`${visibleClients(db, caller)}`;
        const rows = await listUsage(db, {
          span,
          days,
          clients: client === undefined ? own : sql`select ${client}::uuid`,
          container,
          probes,
          after: keyFrom(cursor, usageKey),
          limit: limit + 1,
        });
        const { items, next } = listPage(rows, limit, (row) => [row.day, row.client, row.container]);
        const byDay = new Map(days.map((day) => [day.day, day]));
        const [first, last] = [days[0], days.at(-1)];
        const missing =
          first === undefined || last === undefined
            ? []
            : await missingIn(db, span, { from: first.from, to: last.to }, { quarters: !areOfHours(days) });
        return {
          items: items.flatMap((row) => {
            const day = byDay.get(row.day);
            return day === undefined ? [] : [present(row, day)];
          }),
          next,
          missing: missing.map(presentRange),
        };
      },
    );
  };
}

/** Throws `invalid_request`. */
function daysOf({ from, to, timeZone }: z.output<typeof usageQuery>, now: number): LocalDay[] {
  const refuse = (path: string, message: string) =>
    new ManagementProblem('invalid_request', { detail: `${path} ${message}`, errors: [{ path, message }] });
  try {
    const last = to ?? localDate(now, timeZone);
    const first = from ?? dayAt(daysBefore(Date.parse(last), 30));
    for (const [path, day] of [
      ['to', last],
      ['from', first],
    ] as const) {
      if (day < YEARS.first || day > YEARS.last)
        throw refuse(path, `must be from ${YEARS.first} to ${YEARS.last}`);
    }
    if (first > last) throw refuse('from', 'must not be later than `to`');
    if (Date.parse(last) - Date.parse(first) > MOST_DAYS * DAY * 1_000) {
      throw refuse('from', `must be at most ${MOST_DAYS} days before \`to\``);
    }
    return localDays(first, last, timeZone);
  } catch (error) {
    if (error instanceof TimeZoneError) throw refuse('timeZone', `can’t be used: ${error.message}`);
    throw error;
  }
}
