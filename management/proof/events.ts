import type { Database } from '../db/database.ts';
import { type ProofKey, sitesOf } from '../records/domain-proofs.repository.ts';
import { addEvent } from '../records/events.repository.ts';

/**
 * Adds an event to each of the client's containers with a name in the domain. `detail`: what is wrong with the proof, and
 * what to do; `null`: nothing is wrong any more.
 */
export async function addProofEvents(
  db: Database,
  key: ProofKey,
  { detail, requestId }: { readonly detail: string | null; readonly requestId: string },
): Promise<void> {
  for (const { id, status } of await sitesOf(db, key)) {
    await addEvent(db, {
      container_id: id,
      kind: 'proof',
      status,
      reason: detail === null ? null : 'domain_unproven',
      detail: detail ?? `${key.domain} is proven to be the client’s`,
      actor: null,
      request_id: requestId,
      revision: null,
    });
  }
}
