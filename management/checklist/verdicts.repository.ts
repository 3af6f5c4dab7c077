import type { Selectable } from 'kysely';
import type { Database, Tables } from '../db/database.ts';
import type { PointVerdict } from './items.ts';

/** For each point of a container's checklist that an export from Tag Manager judged: what the last export said. */
export async function listVerdicts(
  db: Database,
  container: string,
): Promise<Selectable<Tables['checklist_verdicts']>[]> {
  return await db
    .selectFrom('checklist_verdicts')
    .selectAll()
    .where('container_id', '=', container)
    .execute();
}

/** Replaces what an earlier export said of the same points. */
export async function saveVerdicts(
  db: Database,
  container: string,
  verdicts: readonly PointVerdict[],
  now: Date,
): Promise<void> {
  await db
    .insertInto('checklist_verdicts')
    .values(
      verdicts.map(({ id, state, detail }) => ({
        ...{ container_id: container, item: id, state, detail, checked_at: now },
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(['container_id', 'item']).doUpdateSet((row) => ({
        state: row.ref('excluded.state'),
        detail: row.ref('excluded.detail'),
        checked_at: row.ref('excluded.checked_at'),
      })),
    )
    .execute();
}
