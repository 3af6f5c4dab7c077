import { isProven, registrableDomain } from '../../sites/manifest/schema.ts';
import type { Settings } from '../context/context.ts';
import { describeProof, proofRecord } from '../lifecycle/proof.ts';
import type { ContainerWithOperation } from '../records/containers.repository.ts';
import type { ContainerView } from './container-view.ts';

type ProofView = ContainerView['domains'][number]['proof'];
type Proven = Pick<ContainerWithOperation, 'client_id' | 'manifest' | 'proofs'>;

/**
 * The proof of a name's registrable domain, as the API answers it. It is only shown: the manifest alone decides what is
 * served.
 */
export function presentProof(
  name: string,
  { client_id: client, manifest, proofs = [] }: Proven,
  { domainProof }: Pick<Settings, 'domainProof'>,
): ProofView {
  if (domainProof === 'off') return null;
  const domain = registrableDomain(name) ?? name;
  const known = proofs.find((proof) => proof.domain === domain);
  return {
    status: known?.status ?? (isProven(manifest, name) ? 'proven' : 'pending'),
    record: proofRecord(client, domain),
    checkedAt: known?.checked_at?.toISOString() ?? null,
    absentSince: known?.absent_since?.toISOString() ?? null,
  };
}

/** What is wrong with the proofs of a container's domains, and what to do. */
export function missingProofs(row: Proven, settings: Pick<Settings, 'domainProof'>): string[] {
  const names = new Set(row.manifest.domains.map(({ domain }) => registrableDomain(domain) ?? domain));
  return [...names].flatMap((name) => {
    const proof = presentProof(name, row, settings);
    if (proof === null) return [];
    const { status, record, absentSince } = proof;
    const absent = absentSince === null ? null : new Date(absentSince);
    return describeProof(name, { status, absentSince: absent }, record) ?? [];
  });
}
