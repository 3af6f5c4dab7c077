import type { Manifest, ManifestInput } from '../../../sites/manifest/schema.ts';
import { ManagementProblem } from '../../http/errors.ts';

/** The same domains in another order. Throws `invalid_request` unless `order` names each of them once. */
export function reorderDomains(current: Manifest, order: readonly string[]): ManifestInput {
  const entries = new Map(current.domains.map((entry) => [entry.domain, entry]));
  const missing = [...entries.keys()].filter((domain) => !order.includes(domain));
  const errors = order.flatMap((domain, index) => {
    const isFirst = order.indexOf(domain) === index;
    if (entries.has(domain) && isFirst) return [];
    const message = isFirst ? 'is not a domain of the container' : 'is listed twice';
    return [{ path: `domains.${index}`, message }];
  });
  if (missing.length > 0) errors.push({ path: 'domains', message: `lacks ${missing.join(', ')}` });
  if (errors.length > 0) {
    const detail = 'domains must name each domain of the container once';
    throw new ManagementProblem('invalid_request', { detail, errors });
  }
  return { ...current, domains: order.flatMap((domain) => entries.get(domain) ?? []) };
}
