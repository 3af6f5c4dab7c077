import { sql } from 'kysely';
import { Migrator } from 'kysely/migration';
import { compareVersions, RELEASE } from '../../base/release.ts';
import type { Database } from './database.ts';
import * as foundation from './migrations/0001_foundation.ts';
import * as poolFunctions from './migrations/0002_pool_functions.ts';
import * as healthAndAudit from './migrations/0003_health_and_audit.ts';
import * as verifications from './migrations/0004_verifications.ts';
import * as changesInFlight from './migrations/0005_changes_in_flight.ts';
import * as namesGivenBack from './migrations/0006_names_given_back.ts';
import * as notices from './migrations/0007_notices.ts';
import * as clientDomains from './migrations/0008_client_domains.ts';
import * as retention from './migrations/0009_retention.ts';
import * as organisations from './migrations/0010_organisations.ts';
import * as tenantsInGit from './migrations/0011_tenants_in_git.ts';
import * as containerLists from './migrations/0012_container_lists.ts';
import * as eventFeed from './migrations/0013_event_feed.ts';
import * as operationSteps from './migrations/0014_operation_steps.ts';
import * as domainProofs from './migrations/0015_domain_proofs.ts';
import * as sessions from './migrations/0016_sessions.ts';
import * as containerCounts from './migrations/0017_container_counts.ts';
import * as repeatedCreations from './migrations/0018_repeated_creations.ts';
import * as revisionsOfCreations from './migrations/0019_revisions_of_creations.ts';
import * as auditOfOrganisations from './migrations/0020_audit_of_organisations.ts';
import * as imageRollouts from './migrations/0021_image_rollouts.ts';
import * as traffic from './migrations/0022_traffic.ts';
import * as handover from './migrations/0023_handover.ts';
import * as archivedOrganisations from './migrations/0024_archived_organisations.ts';
import * as containerLogs from './migrations/0025_container_logs.ts';
import * as trafficNotes from './migrations/0026_traffic_notes.ts';
import * as siteStates from './migrations/0027_site_states.ts';
import * as leaversAndRefusals from './migrations/0028_leavers_and_refusals.ts';
import * as installationKey from './migrations/0029_installation_key.ts';
import * as placeHolds from './migrations/0030_place_holds.ts';
import * as unicodeNames from './migrations/0031_unicode_names.ts';
import * as hostRefusals from './migrations/0032_host_refusals.ts';

/**
 * In order. A released migration never changes. `name@0.3`: release 0.3 can still use a schema that has it, so that an
 * upgrade from there can be undone without a copy of the database.
 */
export const MIGRATIONS = {
  '0001_foundation': foundation,
  '0002_pool_functions': poolFunctions,
  '0003_health_and_audit': healthAndAudit,
  '0004_verifications': verifications,
  '0005_changes_in_flight': changesInFlight,
  '0006_names_given_back': namesGivenBack,
  '0007_notices': notices,
  '0008_client_domains': clientDomains,
  '0009_retention': retention,
  '0010_organisations': organisations,
  '0011_tenants_in_git': tenantsInGit,
  '0012_container_lists': containerLists,
  '0013_event_feed': eventFeed,
  '0014_operation_steps': operationSteps,
  '0015_domain_proofs': domainProofs,
  '0016_sessions': sessions,
  '0017_container_counts': containerCounts,
  '0018_repeated_creations': repeatedCreations,
  '0019_revisions_of_creations': revisionsOfCreations,
  '0020_audit_of_organisations': auditOfOrganisations,
  '0021_image_rollouts': imageRollouts,
  '0022_traffic': traffic,
  '0023_handover': handover,
  '0024_archived_organisations': archivedOrganisations,
  '0025_container_logs': containerLogs,
  '0026_traffic_notes': trafficNotes,
  '0027_site_states': siteStates,
  '0028_leavers_and_refusals': leaversAndRefusals,
  '0029_installation_key': installationKey,
  '0030_place_holds': placeHolds,
  '0031_unicode_names': unicodeNames,
  '0032_host_refusals': hostRefusals,
};

/** Brings the schema to the newest version, or to `last`. A lock in the database serialises concurrent processes. */
export async function migrate(db: Database, last?: keyof typeof MIGRATIONS): Promise<void> {
  const applied = await appliedTo(db).catch((cause: unknown) => {
    throw new Error('the schema’s version could not be read from the database', { cause });
  });
  const known: readonly string[] = Object.keys(MIGRATIONS);
  const newer = applied.filter((name) => !known.includes(name)).toSorted();
  if (newer.length > 0) {
    // A release before this one: it uses the newer schema as it is.
    if (last === undefined && known.every((name) => applied.includes(name)) && newer.every(isUsable)) return;
    throw new Error(
      `the database was made by a newer version of Tagyard (migration ${newer.at(-1)}): run that version, or restore a copy of the database from before its upgrade`,
    );
  }
  if (last === undefined && applied.length === known.length) return;
  const migrator = new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } });
  const { error, results } = await (last === undefined
    ? migrator.migrateToLatest()
    : migrator.migrateTo(last));
  if (error !== undefined) {
    const failed = results?.find(({ status }) => status === 'Error')?.migrationName ?? 'the migrations';
    throw new Error(`${failed} could not be applied to the database`, { cause: error });
  }
}

/** Whether this release can use a schema with a migration that only a newer one knows, by that one's name. */
function isUsable(migration: string): boolean {
  const oldest = migration.split('@')[1];
  return oldest !== undefined && compareVersions(RELEASE, oldest) >= 0;
}

/** The migrations of the database. Kysely's migrator would read the columns of all tables three times to find nothing to do. */
export async function appliedTo(db: Database): Promise<string[]> {
  const table = await sql<{ exists: boolean }>`
    select to_regclass('kysely_migration') is not null as exists`.execute(db);
  if (table.rows[0]?.exists !== true) return [];
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(db);
  return rows.map(({ name }) => name);
}
