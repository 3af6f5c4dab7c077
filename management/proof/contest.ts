import type { Context } from '../context/context.ts';
import { describeProof, judgeRecord, proofRecord } from '../lifecycle/proof.ts';
import { domainHolders } from '../records/client-domains.repository.ts';
import { moveDomain } from '../records/domain-move.repository.ts';
import { findProof, type ProofKey, registrablePartsOf } from '../records/domain-proofs.repository.ts';
import { addProofEvents } from './events.ts';
import { settle } from './settle.ts';

/**
 * Moves those registrable domains of `names` that other clients hold, where DNS says that they are this client's: its
 * record is there, and the holder's is not. The others stay with them.
 */
export async function contestDomains(
  context: Context,
  {
    client,
    names,
    requestId,
  }: { readonly client: string; readonly names: readonly string[]; readonly requestId: string },
): Promise<void> {
  const { db, settings } = context;
  if (settings.domainProof === 'off') return;
  for (const holder of await domainHolders(db, client, registrablePartsOf(names))) {
    await contest(context, holder, { client, requestId });
  }
}

async function contest(
  context: Context,
  { client: holder, domain }: ProofKey,
  { client, requestId }: { readonly client: string; readonly requestId: string },
): Promise<void> {
  const { db, clock, resolvers, log } = context;
  const own = proofRecord(client, domain);
  const answers = await resolvers.txt(own.name);
  const isProven = judgeRecord(answers, own.value) === 'present';
  if (!isProven || judgeRecord(answers, proofRecord(holder, domain).value) !== 'absent') return;
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
  // Before the new holder's own commit: the provisioner refuses a name that another site still claims.
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
