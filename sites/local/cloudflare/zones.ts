import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { EmulatorContext } from './api/context.ts';
import { ApiError, page, success } from './api/envelope.ts';
import { accountId, type Zone, zoneRow } from './api/state.ts';

const query = z.object({
  page: z.coerce.number().int().min(1).default(1),
  // Documented as at least 5, but certbot asks for 1 and gets it.
  per_page: z.coerce.number().int().min(1).max(50).default(20),
  name: z.string().optional(),
  'account.id': z.string().optional(),
});

const tagGateway = z.object({
  enabled: z.boolean(),
  endpoint: z.string().regex(/^\/[A-Za-z0-9]+$/),
  hideOriginalIp: z.boolean(),
  measurementId: z.string().min(1),
  setUpTag: z.boolean().nullish(),
});
const configRow = z.object({ config: z.string() });

/** `/zones`, read only: the emulator keeps the zones that it was started with. */
export function zoneEndpoints(app: FastifyInstance, { db, zone, limits }: EmulatorContext): void {
  const account = accountId(db);
  const describe = (row: Zone) => describeZone(row, account, limits.records);

  app.get('/zones', (request) => {
    const parsed = query.safeParse(request.query);
    if (!parsed.success) throw new ApiError('malformedBody', 'Invalid list parameters.');
    const { name, 'account.id': wantedAccount = account, page: number, per_page: perPage } = parsed.data;
    const zones = db
      .prepare('SELECT * FROM zones ORDER BY name')
      .all()
      .map((row) => zoneRow.parse(row))
      .filter((row) => (name === undefined || row.name === name) && wantedAccount === account);
    return page(zones.map(describe), number, perPage);
  });

  app.get('/zones/:zone_id', ({ params }) => success(describe(zone(params))));

  // Only stored: nothing here sends the path's requests to Google.
  const gateway = '/zones/:zone_id/settings/google-tag-gateway/config';
  app.get(gateway, ({ params }) => {
    const row = db.prepare('SELECT config FROM tag_gateways WHERE zone = ?').get(zone(params).id);
    return success(row === undefined ? null : JSON.parse(configRow.parse(row).config));
  });
  app.put(gateway, ({ params, body }) => {
    const { data } = tagGateway.safeParse(body);
    if (data === undefined) throw new ApiError('malformedBody', 'Invalid configuration.');
    const statement = 'INSERT OR REPLACE INTO tag_gateways (zone, config) VALUES (?, ?)';
    db.prepare(statement).run(zone(params).id, JSON.stringify(data));
    return success(data);
  });
}

/** Free zones created since then may have 200 records, older ones 1,000 (docs/facts.md, Cloudflare API). */
const FEWER_RECORDS_SINCE = '2024-09-01T00:00:00.000Z';
const OLDER = '2024-08-31T00:00:00.000Z';
const FREE = { id: 'free', name: 'Free Website', legacy_id: 'free', is_subscribed: false };
const PRO = { id: 'pro', name: 'Pro Website', legacy_id: 'pro', is_subscribed: true };

/** A plan and a date from which a client deduces this limit of records: 200, 1,000, or else 3,500. */
function planOf(records: number, createdOn: string) {
  const isNew = createdOn >= FEWER_RECORDS_SINCE;
  if (records === 200) return { plan: FREE, created_on: isNew ? createdOn : FEWER_RECORDS_SINCE };
  if (records === 1000) return { plan: FREE, created_on: isNew ? OLDER : createdOn };
  return { plan: PRO, created_on: createdOn };
}

function describeZone({ id, name, created_on: createdOn }: Zone, account: string, records: number) {
  const { plan, created_on } = planOf(records, createdOn);
  return {
    id,
    name,
    status: 'active',
    paused: false,
    type: 'full',
    development_mode: 0,
    owner: { id: account, name: 'local', type: 'user' },
    account: { id: account, name: 'local' },
    plan,
    meta: { step: 4, page_rule_quota: 3, custom_certificate_quota: 0, phishing_detected: false },
    name_servers: [`ns1.${name}`, `ns2.${name}`],
    original_name_servers: null,
    original_registrar: null,
    original_dnshost: null,
    created_on,
    modified_on: created_on,
    activated_on: created_on,
  };
}
