import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { EmulatorContext } from './api/context.ts';
import { ApiError, page, success } from './api/envelope.ts';
import { accountId, type Zone, zoneRow } from './api/state.ts';

const query = z.object({
  page: z.coerce.number().int().min(1).default(1),
  // The document says at least 5, but certbot asks for 1 and gets it.
  per_page: z.coerce.number().int().min(1).max(50).default(20),
  name: z.string().optional(),
  'account.id': z.string().optional(),
});

/** `/zones`, read only: the emulator keeps the zones that it was started with. */
export function zoneEndpoints(app: FastifyInstance, { db, zone }: EmulatorContext): void {
  const account = accountId(db);

  app.get('/zones', (request) => {
    const parsed = query.safeParse(request.query);
    if (!parsed.success) throw new ApiError('malformedBody', 'Invalid list parameters.');
    const { name, 'account.id': wantedAccount = account, page: number, per_page: perPage } = parsed.data;
    const zones = db
      .prepare('SELECT * FROM zones ORDER BY name')
      .all()
      .map((row) => zoneRow.parse(row))
      .filter((row) => (name === undefined || row.name === name) && wantedAccount === account);
    return page(
      zones.map((row) => describe(row, account)),
      number,
      perPage,
    );
  });

  app.get('/zones/:zone_id', ({ params }) => success(describe(zone(params), account)));
}

function describe({ id, name, created_on }: Zone, account: string) {
  return {
    id,
    name,
    status: 'active',
    paused: false,
    type: 'full',
    development_mode: 0,
    owner: { id: account, name: 'local', type: 'user' },
    account: { id: account, name: 'local' },
    plan: { id: 'free', name: 'Free Website', legacy_id: 'free', is_subscribed: false },
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
