import type { Database } from '../db/database.ts';
import type { KnownSite } from './decision.ts';

/** All containers as the database has them, by site. */
export async function knownSites(db: Database): Promise<Map<string, KnownSite>> {
  const rows = await db
    .selectFrom('containers')
    .leftJoin('sites', 'sites.site_id', 'containers.site_id')
    .leftJoin('operations', (join) =>
      join.onRef('operations.container_id', '=', 'containers.id').on('operations.status', '=', 'running'),
    )
    .select([
      'containers.id',
      'containers.site_id as siteId',
      'containers.status',
      'containers.status_reason as reason',
      'containers.status_detail as detail',
      'containers.manifest',
      'sites.revision',
      'sites.blob',
      'sites.site_id as record',
      'operations.step',
    ])
    .execute();
  return new Map(rows.map(({ record, ...row }) => [row.siteId, { ...row, isRecorded: record !== null }]));
}
