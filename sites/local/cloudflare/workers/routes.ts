import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { EmulatorContext } from '../api/context.ts';
import { ApiError, success } from '../api/envelope.ts';
import { newId, type Zone } from '../api/state.ts';
import { patternFault } from './route-pattern.ts';

const routeInput = z.object({ pattern: z.string().min(1), script: z.string().min(1).nullish() });
const routeRow = z.object({ id: z.string(), pattern: z.string(), script: z.string().nullable() });
type Route = z.infer<typeof routeRow>;
const countRow = z.object({ total: z.number() });

/** The API omits `script` for a bypass route. */
function describe({ script, ...route }: Route) {
  return script === null ? route : { ...route, script };
}

/** `/zones/{zone_id}/workers/routes`. Not paged, like the real list. */
export function routeEndpoints(app: FastifyInstance, context: EmulatorContext): void {
  const { db, zone, scripts, limits, routesChanged } = context;
  const one = '/zones/:zone_id/workers/routes/:route_id';
  type One = { Params: { route_id: string } };

  function find({ id }: Zone, route: string) {
    const row = db.prepare('SELECT id, pattern, script FROM routes WHERE zone = ? AND id = ?').get(id, route);
    if (row === undefined) throw new ApiError('unknownRoute', 'workers.api.error.route_not_found');
    return routeRow.parse(row);
  }

  function parse({ id, name }: Zone, body: unknown, self: string | null) {
    const parsed = routeInput.safeParse(body);
    if (!parsed.success) throw new ApiError('invalidPattern', 'workers.api.error.invalid_route_pattern');
    const { pattern, script = null } = parsed.data;
    const fault = patternFault(pattern, name);
    if (fault !== null)
      throw new ApiError('invalidPattern', `workers.api.error.invalid_route_pattern: ${fault}`);
    if (script !== null && scripts.find(script) === null) {
      throw new ApiError('unknownRouteScript', 'Cannot configure route because the Worker does not exist.');
    }
    const taken = db
      .prepare('SELECT id FROM routes WHERE zone = ? AND pattern = ? AND id IS NOT ?')
      .get(id, pattern, self);
    if (taken !== undefined) throw new ApiError('routeExists', 'workers.api.error.duplicate_route');
    return { pattern, script };
  }

  app.get('/zones/:zone_id/workers/routes', ({ params }) => {
    const rows = db
      .prepare('SELECT id, pattern, script FROM routes WHERE zone = ? ORDER BY pattern')
      .all(zone(params).id);
    return success(rows.map((row) => describe(routeRow.parse(row))));
  });
  app.post('/zones/:zone_id/workers/routes', async ({ params, body }) => {
    const owner = zone(params);
    const route = { id: newId(), ...parse(owner, body, null) };
    const { total } = countRow.parse(
      db.prepare('SELECT count(*) AS total FROM routes WHERE zone = ?').get(owner.id),
    );
    if (total >= limits.routes) {
      const message = `Route limit reached: zone ${owner.name} allows ${limits.routes} routes.`;
      throw new ApiError('routeQuota', `${message} Delete unused routes or use wildcard patterns.`);
    }
    db.prepare('INSERT INTO routes (id, zone, pattern, script) VALUES (?, ?, ?, ?)').run(
      route.id,
      owner.id,
      route.pattern,
      route.script,
    );
    await routesChanged();
    return success(describe(route));
  });
  app.get<One>(one, ({ params }) => success(describe(find(zone(params), params.route_id))));
  app.put<One>(one, async ({ params, body }) => {
    const owner = zone(params);
    const { id } = find(owner, params.route_id);
    const route = { id, ...parse(owner, body, id) };
    db.prepare('UPDATE routes SET pattern = ?, script = ? WHERE id = ?').run(route.pattern, route.script, id);
    await routesChanged();
    return success(describe(route));
  });
  app.delete<One>(one, async ({ params }) => {
    const { id } = find(zone(params), params.route_id);
    db.prepare('DELETE FROM routes WHERE id = ?').run(id);
    await routesChanged();
    return success({ id });
  });
}
