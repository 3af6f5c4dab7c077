import { sql } from 'kysely';
import { analyticsSums, firstPoint } from '../analytics/sums.ts';
import type { AnalyticsClient } from '../clients/analytics-client.ts';
import type { Database } from '../db/database.ts';
import { type PointsRange, presentPoints, type Whose } from './points.ts';

interface Parts {
  readonly db: Database;
  readonly analytics: AnalyticsClient;
  readonly now: Date;
}

/** The points of Cloudflare's Analytics Engine, as `trafficPoints` answers those of the collector. Throws `AnalyticsError`. */
export async function sampledPoints(parts: Parts, whose: Whose, range: PointsRange) {
  const { db, analytics, now } = parts;
  const since = await firstPoint(analytics, now.getTime());
  const scope = whose === 'all' ? null : await scopeOf(db, whose);
  const isEmpty = since === null || scope?.containers.length === 0;
  const { steps, sampled } = isEmpty
    ? { steps: new Map(), sampled: false }
    : await analyticsSums(analytics, { ...range, scope, deleted: await deletedOf(db, scope) });
  const known = since === null ? null : { since, until: now };
  return presentPoints(range, { known, steps, sampled });
}

async function scopeOf(db: Database, { containers }: Exclude<Whose, 'all'>) {
  const { rows } = await sql<{ id: string; site: string | null }>`
    select given.id, containers.site_id as site
    from (${containers}) as given(id) left join containers on containers.id = given.id`.execute(db);
  const sites = rows.flatMap(({ site }) => (site === null ? [] : [site]));
  return { containers: rows.map(({ id }) => id), sites: sites.length === rows.length ? sites : null };
}

async function deletedOf(db: Database, scope: { readonly containers: readonly string[] } | null) {
  const rows = await db.selectFrom('traffic_deletions').select(['container', 'until']).execute();
  return scope === null ? rows : rows.filter(({ container }) => scope.containers.includes(container));
}
