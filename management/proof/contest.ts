import type { Context } from '../context/context.ts';
import { describeProof, judgeRecord, proofRecord } from '../lifecycle/proof.ts';
import { domainHolders } from '../records/client-domains.repository.ts';
import { moveDomain } from '../records/domain-move.repository.ts';
import { findProof, type ProofKey, registrablePartsOf } from '../records/domain-proofs.repository.ts';
import { addProofEvents } from './events.ts';
import { settle } from './settle.ts';

interface Wanted {
  readonly client: string;
  readonly names: readonly string[];
}

/** Moves the domains of `winnableDomains`, and returns them. The others stay with their holders. */
export async function contestDomains(
  context: Context,
  { requestId, ...wanted }: Wanted & { readonly requestId: string },
): Promise<string[]> {
  const won = await winnableDomains(context, wanted);
  for (const domain of won) await move(context, { client: wanted.client, domain }, requestId);
  return won;
}

/**
 * Those registrable domains of `names` that other clients hold, where DNS says that they are this client's: its record is
 * there, and the holder's is not.
 */
export async function winnableDomains(context: Context, { client, names }: Wanted): Promise<string[]> {
  const { db, settings, resolvers } = context;
  if (settings.domainProof === 'off') return [];
  const winnable: string[] = [];
  for (const { client: holder, domain } of await domainHolders(db, client, registrablePartsOf(names))) {
    const own = proofRecord(client, domain);
    const answers = await resolvers.txt(own.name);
    const isProven = judgeRecord(answers, own.value) === 'present';
    const isFree = judgeRecord(answers, proofRecord(holder, domain).value) === 'absent';
    if (isProven && isFree) winnable.push(domain);
  }
  return winnable;
}

/** What a plan says of domains that its request would move. */
export function moveWarnings(domains: readonly string[]): string[] {
  return domains.map(
    (domain) => `${domain} moves away from the client that has it now, because of the TXT record`,
  );
}

async function move(context: Context, { client, domain }: ProofKey, requestId: string): Promise<void> {
  const { db, clock, log } = context;
  const others = await db.transaction().execute(async (trx) => {
    const moved = await moveDomain(trx, { client, domain }, clock.date());
    const lost = { status: 'lost', absentSince: null } as const;
    for (const other of moved) {
      const detail = describeProof(domain, lost, proofRecord(other, domain));
      await addProofEvents(trx, { client: other, domain }, { detail, requestId });
    }
    return moved;
  });
  log.info(
    { domain, from: others, to: client, requestId },
    'a domain is moved to the client that has proven it',
  );
  // The former holders come first, because the provisioner refuses a name that another site still claims.
  for (const other of [...others, client]) {
    const proof = await findProof(db, { client: other, domain });
    if (proof !== undefined) await settle(context, proof, requestId);
  }
}

/** What a client can do to get a domain that another one holds. */
export function contestAdvice(
  { settings }: Pick<Context, 'settings'>,
  client: string,
  names: readonly string[],
): string {
  if (settings.domainProof === 'off') return '';
  const records = registrablePartsOf(names).map((domain) => {
    const { name, value } = proofRecord(client, domain);
    return `${name} with the value ${value}`;
  });
  return `; if it is yours, publish the TXT record ${records.join(', and ')}, remove the record of any other client, and repeat the request`;
}
