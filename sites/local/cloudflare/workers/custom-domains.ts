import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { EmulatorContext } from '../api/context.ts';
import { ApiError, success } from '../api/envelope.ts';
import { newId, zoneRow } from '../api/state.ts';

const input = z.object({
  hostname: z.string().toLowerCase(),
  service: z.string(),
  environment: z.string().default('production'),
  zone_id: z.string().optional(),
  zone_name: z.string().optional(),
  override_existing_origin: z.boolean().default(false),
});
const domainRow = z.object({
  id: z.string(),
  zone_id: z.string(),
  zone_name: z.string(),
  hostname: z.string(),
  service: z.string(),
  environment: z.string(),
});
const filters = z.object({
  hostname: z.string().optional(),
  service: z.string().optional(),
  environment: z.string().optional(),
  zone_id: z.string().optional(),
  zone_name: z.string().optional(),
});

/** A certificate for each domain; its id is made from the domain's. */
const certId = (id: string) => id.replace(/^(.{8})(.{4})(.{4})(.{4})(.*)$/, '$1-$2-$3-$4-$5');

/** True also for the zone's own name. */
const isIn = (zone: string, hostname: string) => hostname === zone || hostname.endsWith(`.${zone}`);

/** `/accounts/{account_id}/workers/domains`: hostnames that lead to a script with all their paths. */
export function domainEndpoints(app: FastifyInstance, context: EmulatorContext): void {
  const { db, account, scripts, limits, zone, routesChanged } = context;
  const path = '/accounts/:account_id/workers/domains';
  type One = { Params: { domain_id: string } };

  const all = () =>
    db
      .prepare(
        `SELECT d.id, d.hostname, d.service, d.environment, z.id AS zone_id, z.name AS zone_name
         FROM domains d JOIN zones z ON z.id = d.zone ORDER BY d.hostname`,
      )
      .all()
      .map((row) => domainRow.parse(row))
      .map((domain) => ({ ...domain, cert_id: certId(domain.id) }));

  function find(id: string) {
    const found = all().find((domain) => domain.id === id);
    if (found === undefined) throw new ApiError('unknownDomain', 'Custom domain not found.');
    return found;
  }

  /** The zone that the request names; else the nearest that has the hostname (docs/facts.md, Cloudflare API). */
  function ownerOf({ zone_id, zone_name, hostname }: z.infer<typeof input>) {
    if (zone_id !== undefined) return zone({ zone_id });
    const zones = db
      .prepare('SELECT * FROM zones ORDER BY length(name) DESC')
      .all()
      .map((row) => zoneRow.parse(row));
    const found = zones.find(({ name }) =>
      zone_name === undefined ? isIn(name, hostname) : name === zone_name,
    );
    if (found === undefined) {
      const which = zone_name === undefined ? 'no zone' : `the unknown zone ${zone_name}`;
      throw new ApiError('foreignDomain', `Hostname ${hostname} is in ${which}.`);
    }
    return found;
  }

  app.get(path, ({ params, query }) => {
    account(params);
    const wanted = Object.entries(filters.parse(query));
    return success(
      all().filter((domain) =>
        wanted.every(([name, value]) => domain[name as keyof typeof domain] === value),
      ), // a filter is named like its member
    );
  });
  app.put(path, async ({ params, body }) => {
    account(params);
    const parsed = input.safeParse(body);
    if (!parsed.success)
      throw new ApiError('malformedBody', 'A custom domain needs a hostname and a service.');
    const { hostname, service, environment, override_existing_origin: mayOverride } = parsed.data;
    const owner = ownerOf(parsed.data);
    if (!/^[a-z0-9.-]+$/.test(hostname))
      throw new ApiError('invalidDomain', `Hostname ${hostname} is invalid.`);
    if (!isIn(owner.name, hostname)) {
      throw new ApiError('foreignDomain', `Hostname ${hostname} does not belong to zone ${owner.name}.`);
    }
    if (scripts.find(service) === null)
      throw new ApiError('unknownScript', 'This Worker does not exist on your account.');
    const current = all().find((domain) => domain.hostname === hostname);
    if (current !== undefined && current.service !== service && !mayOverride) {
      throw new ApiError('domainTaken', `Hostname ${hostname} is already configured as a custom domain.`);
    }
    if (current === undefined) {
      if (all().filter(({ zone_id }) => zone_id === owner.id).length >= limits.customDomains) {
        const message = `Custom domain limit reached: zone ${owner.name} allows ${limits.customDomains} custom domains.`;
        throw new ApiError('domainQuota', message);
      }
      const records = db
        .prepare('SELECT id FROM records WHERE zone = ? AND name = ?')
        .all(owner.id, hostname);
      if (records.length > 0) {
        throw new ApiError(
          'domainHasRecords',
          `Hostname ${hostname} has existing DNS records that conflict.`,
        );
      }
    }
    const id = current?.id ?? newId();
    const statement =
      'INSERT OR REPLACE INTO domains (id, zone, hostname, service, environment) VALUES (?, ?, ?, ?, ?)';
    db.prepare(statement).run(id, owner.id, hostname, service, environment);
    await routesChanged();
    return success(find(id));
  });
  app.get<One>(`${path}/:domain_id`, ({ params }) => {
    account(params);
    return success(find(params.domain_id));
  });
  app.delete<One>(`${path}/:domain_id`, async ({ params }) => {
    account(params);
    db.prepare('DELETE FROM domains WHERE id = ?').run(find(params.domain_id).id);
    await routesChanged();
    return success(null);
  });
}
