import { hash } from 'node:crypto';

/** Whether a registrable domain is proven to be a client's. */
export const PROOF_STATUSES = ['pending', 'proven', 'lost'] as const;
export type ProofStatus = (typeof PROOF_STATUSES)[number];

/** What one resolver answered: the TXT records of a name (perhaps none), or why there is no answer. */
export type TxtAnswer =
  | { readonly resolver: string; readonly values: readonly string[] }
  | { readonly resolver: string; readonly problem: string };

/** Whether a record exists, by all resolvers together. `unknown`: too few of them answered, or they disagree. */
type RecordVerdict = 'present' | 'absent' | 'unknown';

interface ProofRecord {
  readonly name: string;
  readonly value: string;
}

/** What is known of a client's proof of one domain. */
export interface ProofState {
  readonly status: ProofStatus;
  /** When a check last found the record; `null`: never, for example because the domain existed before proofs did. */
  readonly seenAt: Date | null;
  /** Since when the record is missing; `null`: it isn't, or it never was there. */
  readonly absentSince: Date | null;
}

const DAY_MS = 86_400_000;
/** Days for which a record may be missing before the proof is lost. */
const ABSENT_DAYS = 14;

/**
 * The TXT record by which a client proves a domain. The value is computed from the client's id alone, so that no backup
 * is needed. It is no secret: only the owner of the domain can publish it there, and thereby names the client.
 */
export function proofRecord(client: string, domain: string): ProofRecord {
  const value = `tagyard-${hash('sha256', `tagyard domain proof\n${client}`, 'base64url')}`;
  return { name: `_tagyard-challenge.${domain}`, value };
}

/**
 * Present: more than half of all resolvers have the value. Absent: more than half answer that it doesn't exist, and
 * none has it. A resolver that fails or times out counts for neither.
 */
export function judgeRecord(answers: readonly TxtAnswer[], value: string): RecordVerdict {
  const answered = answers.flatMap((answer) => ('values' in answer ? [answer.values] : []));
  const present = answered.filter((values) => values.includes(value)).length;
  const isMost = (count: number) => count * 2 > answers.length;
  if (isMost(present)) return 'present';
  return present === 0 && isMost(answered.length) ? 'absent' : 'unknown';
}

/** The state after a check. A proven domain whose record was never seen existed before proofs did and stays proven. */
export function nextProof(before: ProofState, verdict: RecordVerdict, now: Date): ProofState {
  if (verdict === 'unknown') return before;
  if (verdict === 'present') return { status: 'proven', seenAt: now, absentSince: null };
  if (before.status !== 'proven') return before;
  if (before.absentSince === null) return before.seenAt === null ? before : { ...before, absentSince: now };
  const isLost = now >= proofEnd(before.absentSince);
  return isLost ? { ...before, status: 'lost' } : before;
}

/** When a proof whose record is missing is lost. */
export function proofEnd(absentSince: Date): Date {
  return new Date(absentSince.getTime() + ABSENT_DAYS * DAY_MS);
}

/** When to check next: soon in the first three days of a pending proof, else once a day. */
export function nextCheckMs({
  status,
  ageMs,
}: {
  readonly status: ProofStatus;
  readonly ageMs: number;
}): number {
  return status === 'pending' && ageMs < 3 * DAY_MS ? 600_000 : DAY_MS;
}

/** What is wrong with a proof and what to do, for a person; `null`: nothing is. */
export function describeProof(
  domain: string,
  { status, absentSince }: Pick<ProofState, 'status' | 'absentSince'>,
  { name, value }: ProofRecord,
): string | null {
  const publish = `publish the TXT record ${name} with the value ${value}`;
  if (status === 'pending') {
    return `${domain} is not proven to be the client’s, so only the edge hostname serves it: ${publish}`;
  }
  if (status === 'lost') {
    return `the proof of ${domain} is lost, so only the edge hostname serves it: ${publish}`;
  }
  if (absentSince === null) return null;
  const until = proofEnd(absentSince).toISOString().slice(0, 10);
  return `the record that proves ${domain} is missing since ${absentSince.toISOString().slice(0, 10)}; from ${until} on, only the edge hostname serves it: ${publish}`;
}
