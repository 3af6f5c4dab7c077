import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { EmulatorContext } from './api/context.ts';
import { ApiError, page, success } from './api/envelope.ts';
import { newId, type Zone } from './api/state.ts';

const ssl = z.looseObject({
  method: z.enum(['http', 'txt', 'email']).default('http'),
  type: z.literal('dv').default('dv'),
  wildcard: z.boolean().default(false),
});
const stored = z.object({
  ssl: ssl.extend({ id: z.string() }),
  custom_metadata: z.record(z.string(), z.string()).optional(),
  custom_origin_server: z.string().optional(),
  custom_origin_sni: z.string().optional(),
});
type Stored = z.infer<typeof stored>;
const created = stored.extend({ hostname: z.string().toLowerCase().max(255), ssl: ssl.prefault({}) });
const changed = stored.extend({ ssl }).partial();
const query = z.object({
  page: z.coerce.number().int().min(1).default(1),
  per_page: z.coerce.number().int().min(5).max(1000).default(20),
  hostname: z.string().optional(),
  id: z.string().optional(),
});
const row = z.object({ id: z.string(), hostname: z.string(), created_at: z.string(), body: z.string() });
const fallbackRow = z.object({ origin: z.string(), created_at: z.string() });

/** `/zones/{zone_id}/custom_hostnames`. Nothing validates a hostname on one machine: it stays pending. */
export function hostnameEndpoints(app: FastifyInstance, { db, zone, now, limits }: EmulatorContext): void {
  const path = '/zones/:zone_id/custom_hostnames';
  type One = { Params: { custom_hostname_id: string } };

  function describe(found: unknown) {
    const { body, ...rest } = row.parse(found);
    const { ssl: certificate, ...more } = stored.parse(JSON.parse(body));
    const token = certificate.id.replaceAll('-', '');
    return {
      ...rest,
      ...more,
      status: 'pending',
      ssl: { bundle_method: 'ubiquitous', ...certificate, status: 'pending_validation' },
      ownership_verification: {
        type: 'txt',
        name: `_cf-custom-hostname.${rest.hostname}`,
        value: certificate.id,
      },
      ownership_verification_http: {
        http_url: `http://${rest.hostname}/.well-known/cf-custom-hostname-challenge/${rest.id}`,
        http_body: token,
      },
    };
  }
  const all = ({ id }: Zone) =>
    db.prepare('SELECT * FROM hostnames WHERE zone = ? ORDER BY hostname').all(id).map(describe);

  function find(params: { custom_hostname_id: string }) {
    const found = all(zone(params)).find(({ id }) => id === params.custom_hostname_id);
    if (found === undefined) throw new ApiError('unknownHostname', 'The custom hostname was not found.');
    return found;
  }

  app.get(path, (request) => {
    const parsed = query.safeParse(request.query);
    if (!parsed.success) throw new ApiError('invalidHostname', 'Invalid list parameters.');
    const { hostname, id, page: number, per_page: perPage } = parsed.data;
    const some = all(zone(request.params)).filter(
      (found) =>
        (hostname === undefined || found.hostname.includes(hostname)) && (id ?? found.id) === found.id,
    );
    return page(some, number, perPage);
  });
  app.post(path, ({ params, body }) => {
    const owner = zone(params);
    const parsed = created.safeParse(body);
    if (!parsed.success) throw new ApiError('invalidHostname', 'Invalid custom hostname.');
    const { hostname, ssl: wanted, ...rest } = parsed.data;
    if (!/^(\*\.)?([a-z0-9_-]+\.)+[a-z0-9-]+$/.test(hostname)) {
      throw new ApiError('invalidHostname', `Invalid custom hostname ${hostname}.`);
    }
    if (db.prepare('SELECT id FROM hostnames WHERE hostname = ?').get(hostname) !== undefined) {
      throw new ApiError('hostnameExists', 'Duplicate custom hostname found.');
    }
    if (all(owner).length >= limits.customHostnames) {
      throw new ApiError('hostnameQuota', 'Quota of custom hostnames exceeded.');
    }
    const id = newId();
    const value: Stored = { ...rest, ssl: { ...wanted, id: randomUUID() } };
    db.prepare('INSERT INTO hostnames (id, zone, hostname, created_at, body) VALUES (?, ?, ?, ?, ?)').run(
      id,
      owner.id,
      hostname,
      now().toISOString(),
      JSON.stringify(value),
    );
    return success(describe(db.prepare('SELECT * FROM hostnames WHERE id = ?').get(id)));
  });

  const fallback = `${path}/fallback_origin`;
  function fallbackOf({ id }: Zone) {
    const found = db.prepare('SELECT * FROM fallback_origins WHERE zone = ?').get(id);
    if (found === undefined) throw new ApiError('unknownFallback', 'The zone has no fallback origin.');
    const { origin, created_at } = fallbackRow.parse(found);
    return { origin, status: 'active', created_at, updated_at: created_at, errors: [] };
  }
  app.get(fallback, ({ params }) => success(fallbackOf(zone(params))));
  app.put(fallback, ({ params, body }) => {
    const owner = zone(params);
    const { data } = z.object({ origin: z.string().min(1).max(255) }).safeParse(body);
    if (data === undefined) throw new ApiError('invalidHostname', 'A fallback origin needs an origin.');
    const statement = 'INSERT OR REPLACE INTO fallback_origins (zone, origin, created_at) VALUES (?, ?, ?)';
    db.prepare(statement).run(owner.id, data.origin, now().toISOString());
    return success(fallbackOf(owner));
  });
  app.delete(fallback, ({ params }) => {
    const owner = zone(params);
    const last = fallbackOf(owner);
    db.prepare('DELETE FROM fallback_origins WHERE zone = ?').run(owner.id);
    return success({ ...last, status: 'pending_deletion' });
  });

  app.get<One>(`${path}/:custom_hostname_id`, ({ params }) => success(find(params)));
  app.patch<One>(`${path}/:custom_hostname_id`, ({ params, body }) => {
    const { id, ssl: certificate, custom_metadata, custom_origin_server, custom_origin_sni } = find(params);
    const parsed = changed.safeParse(body);
    if (!parsed.success) throw new ApiError('invalidHostname', 'Invalid custom hostname.');
    const { status: _status, ...kept } = certificate;
    const current = { custom_metadata, custom_origin_server, custom_origin_sni, ssl: kept };
    const next = stored.parse({ ...current, ...parsed.data, ssl: { ...kept, ...parsed.data.ssl } });
    db.prepare('UPDATE hostnames SET body = ? WHERE id = ?').run(JSON.stringify(next), id);
    return success(find(params));
  });
  app.delete<One>(`${path}/:custom_hostname_id`, ({ params }) => {
    const { id } = find(params);
    db.prepare('DELETE FROM hostnames WHERE id = ?').run(id);
    return { id };
  });
}
