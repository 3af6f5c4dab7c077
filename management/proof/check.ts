import type { Context } from '../context/context.ts';
import type { Database } from '../db/database.ts';
import {
  describeProof,
  judgeRecord,
  nextCheckMs,
  nextProof,
  type ProofState,
  proofRecord,
} from '../lifecycle/proof.ts';
import { domainHolders } from '../records/client-domains.repository.ts';
import {
  findProof,
  lockProof,
  type ProofKey,
  type ProofRow,
  recordCheck,
  releaseProof,
  sitesOf,
} from '../records/domain-proofs.repository.ts';
import { addProofEvents } from './events.ts';
import { settle } from './settle.ts';

const DAY_MS = 86_400_000;

function stateOf({ status, seen_at, absent_since }: ProofRow): ProofState {
  return { status, seenAt: seen_at, absentSince: absent_since };
}

/**
 * Asks the resolvers for a proof's record and records the outcome. A new status is committed; a new `describeProof`
 * text adds an event to each of the client's containers in the domain. Without such a container, no status changes.
 */
export async function checkProof(context: Context, key: ProofKey, requestId: string): Promise<void> {
  const { db, clock, resolvers, log } = context;
  const record = proofRecord(key.client, key.domain);
  const answers = await resolvers.txt(record.name);
  const verdict = judgeRecord(answers, record.value);
  const moved = await db.transaction().execute(async (trx) => {
    const before = await lockProof(trx, key);
    if (before === undefined) return null;
    const sites = await sitesOf(trx, key);
    const now = clock.date();
    if (sites.length === 0) {
      await releaseProof(trx, key, new Date(now.getTime() + DAY_MS));
      return null;
    }
    const isHeld = verdict === 'present' && before.status !== 'proven' && (await isOfAnother(trx, key));
    const after = nextProof(stateOf(before), isHeld ? 'unknown' : verdict, now);
    const ageMs = now.getTime() - before.since.getTime();
    const nextAt = new Date(now.getTime() + nextCheckMs({ status: after.status, ageMs }));
    await recordCheck(trx, before, { ...after, checkedAt: now, nextAt });
    const detail = describeProof(key.domain, after, record);
    if (detail !== describeProof(key.domain, stateOf(before), record)) {
      await addProofEvents(trx, key, { detail, requestId });
    }
    return after.status === before.status ? null : { ...before, status: after.status };
  });
  if (verdict === 'unknown') log.warn({ domain: key.domain, answers }, 'no clear answer for a proof record');
  if (moved !== null) await settle(context, moved, requestId);
}

/** Whether another client holds the domain by its record. That client keeps the domain until the record is gone. */
async function isOfAnother(db: Database, { client, domain }: ProofKey): Promise<boolean> {
  const [holder] = await domainHolders(db, client, [domain]);
  if (holder === undefined) return false;
  const proof = await findProof(db, holder);
  return proof?.status === 'proven' && proof.seen_at !== null;
}
