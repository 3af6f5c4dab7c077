import type { Context } from '../context/context.ts';
import { type ProofRow, settleProof, sitesOf, unsettledProofs } from '../records/domain-proofs.repository.ts';
import { rewriteProof } from './manifest.ts';

const AUTHOR = { name: 'Tagyard', email: 'tagyard@localhost' };
/** The most proofs whose sites are committed in one go. */
const MOST = 100;

type Parts = Pick<Context, 'db' | 'repo' | 'provisioner' | 'log'>;

/** Writes into git what a proof's status means for the client's sites, one commit each. Throws if git can't be written. */
export async function settle(parts: Parts, proof: ProofRow, requestId: string): Promise<void> {
  const { db, repo, provisioner, log } = parts;
  const { client_id: client, domain, status } = proof;
  const isProven = status === 'proven';
  const sites = await sitesOf(db, { client, domain });
  const commits = await Promise.all(
    sites.map(({ site_id: site }) =>
      repo.commit({
        site,
        subject: `${isProven ? 'Serve' : 'Don’t serve'} names of ${domain} for ${site}`,
        author: AUTHOR,
        trailers: {
          Site: site,
          Actor: 'domain-proof',
          'Request-Id': requestId,
          Reason: isProven ? `${domain} is proven` : `${domain} is not proven`,
        },
        edit: (text) => rewriteProof(text, site, { domain, isProven }),
      }),
    ),
  );
  await settleProof(db, proof);
  if (!commits.some(({ changed }) => changed)) return;
  provisioner
    .sync({ requestId })
    .catch((err: unknown) =>
      log.warn({ err, domain }, 'the provisioner will get the commits at its next poll'),
    );
}

/** Settles up to `MOST` proofs whose status git doesn't show yet. Each failure is logged; the next call tries again. */
export async function settleAll(parts: Parts, requestId: string): Promise<void> {
  for (const proof of await unsettledProofs(parts.db, MOST)) {
    await settle(parts, proof, requestId).catch((err: unknown) =>
      parts.log.warn({ err, domain: proof.domain }, 'the proof of a domain could not be committed'),
    );
  }
}
