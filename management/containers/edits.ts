import type { z } from 'zod';
import { isFirstPartyHost, type Manifest, type ManifestInput } from '../../gitops/manifest/schema.ts';
import { ManagementProblem } from '../http/errors.ts';
import type { containerPatch } from './containers.schema.ts';
import { newToken } from './draft.ts';

/** The manifest's schema allows no more previous tokens. The newest are kept. */
const KEPT_TOKENS = 10;

export function patch(
  current: Manifest,
  { name, features, modules, image }: z.output<typeof containerPatch>,
): ManifestInput {
  return {
    ...current,
    name: name ?? current.name,
    features: { ...current.features, ...features },
    modules: { ...current.modules, ...modules },
    image: image ?? current.image,
  };
}

/** A domain that exists already gets the new web tag id and keeps its token. */
export function addDomain(current: Manifest, domain: string, webTagId: string): ManifestInput {
  const known = current.domains.some((entry) => entry.domain === domain);
  const domains = known
    ? current.domains.map((entry) => (entry.domain === domain ? { ...entry, webTagId } : entry))
    : [...current.domains, { domain, webTagId, token: newToken('ct') }];
  return { ...current, domains };
}

export function removeDomain(current: Manifest, domain: string): ManifestInput {
  const domains = current.domains.filter((entry) => entry.domain !== domain);
  if (domains.length === current.domains.length) throw new ManagementProblem('unknown_domain');
  if (domains.length === 0) throw new ManagementProblem('last_domain');
  return { ...current, domains };
}

export function withCustomDomain(current: Manifest, domain: string): ManifestInput {
  if (
    !isFirstPartyHost(
      domain,
      current.domains.map((entry) => entry.domain),
    )
  ) {
    throw new ManagementProblem('foreign_domain', {
      errors: [{ path: 'domain', message: 'is not under the registrable part of any of the domains' }],
    });
  }
  if (current.customDomains.includes(domain)) return current;
  return { ...current, customDomains: [...current.customDomains, domain] };
}

export function withoutCustomDomain(current: Manifest, domain: string): ManifestInput {
  if (!current.customDomains.includes(domain)) throw new ManagementProblem('unknown_domain');
  return { ...current, customDomains: current.customDomains.filter((name) => name !== domain) };
}

/** The old token is accepted until `until` (a UTC date), so that pages with the old snippet keep working. */
export function rotateLoaderToken(current: Manifest, token: string, until: string): ManifestInput {
  const previous = [{ token: current.loaderToken, until }, ...current.previousLoaderTokens];
  return { ...current, loaderToken: token, previousLoaderTokens: previous.slice(0, KEPT_TOKENS) };
}

export function tombstone(current: Manifest): ManifestInput {
  if (current.protect) throw new ManagementProblem('site_protected');
  return { ...current, state: 'absent' };
}
