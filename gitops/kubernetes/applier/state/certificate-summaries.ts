import { X509Certificate } from 'node:crypto';
import type { KubernetesObject } from '../../client/kinds.ts';
import { type CertificateSummary, certificateNames } from '../../delivery/certificate-choice.ts';
import { readDelivered } from '../../delivery/secrets.ts';

/**
 * The names and end dates of the certificates in Secrets. The watched copies of these Secrets have only metadata, so
 * the whole Secret is read, once: its name is a hash of its content.
 */
export class CertificateSummaries {
  #known: ReadonlyMap<string, CertificateSummary> = new Map();

  /** `read` returns the whole Secret; `null`: it has been deleted meanwhile. */
  async of(
    secrets: readonly KubernetesObject[],
    read: (secret: KubernetesObject) => Promise<KubernetesObject | null>,
  ): Promise<CertificateSummary[]> {
    const found = new Map<string, CertificateSummary>();
    for (const secret of secrets) {
      const { name } = secret.metadata;
      const whole = this.#known.has(name) ? null : await read(secret);
      const summary = this.#known.get(name) ?? (whole === null ? null : summaryOf(whole));
      if (summary !== null) found.set(name, summary);
    }
    this.#known = found;
    return [...found.values()];
  }
}

function summaryOf(secret: KubernetesObject): CertificateSummary {
  const id = secret.metadata.name;
  try {
    const delivered = readDelivered(secret);
    const leaf = new X509Certificate(delivered.kind === 'certificate' ? delivered.cert : '');
    return { id, names: certificateNames(leaf), notAfter: leaf.validToDate.getTime() };
  } catch {
    // Gateways can’t read it either, so it serves no name.
    return { id, names: [], notAfter: 0 };
  }
}
