import type { z } from 'zod';
import { isFirstPartyHost, type Manifest, type ManifestInput } from '../../sites/manifest/schema.ts';
import { clientKeysOf } from '../../sites/requests/container.ts';
import { ManagementProblem } from '../http/errors.ts';
import type { containerPatch } from './containers.schema.ts';
import { newToken } from './draft.ts';
import type { Draw } from './names/draw.ts';

/** The maximum number of previous tokens that the manifest's schema allows. */
const MOST_TOKENS = 10;

export function patch(
  current: Manifest,
  { name, features, modules, image, tls, resources, ...rest }: z.output<typeof containerPatch>,
): ManifestInput & Pick<Manifest, 'resources'> {
  return {
    ...current,
    name: name ?? current.name,
    features: { ...current.features, ...features },
    modules: { ...current.modules, ...modules },
    image: image ?? current.image,
    tls: tls === undefined ? current.tls : { mode: tls },
    resources: {
      processing: withMembers(current.resources.processing, resources?.processing),
      preview: withMembers(current.resources.preview, resources?.preview),
    },
    ...clientKeysOf(rest),
  };
}

/**
 * `current` with the given members. Undefined members are left out, because they would replace values by their
 * defaults.
 */
function withMembers<Members extends object>(
  current: Members,
  given: { readonly [Key in keyof Members]?: Members[Key] | undefined } = {},
): Members {
  return {
    ...current,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  };
}

/** A domain that exists already gets the new web tag id, if there is one, and keeps everything else. */
export function addDomain(
  current: Manifest,
  { domain, webTagId }: { readonly domain: string; readonly webTagId?: string | undefined },
  draw: Draw,
): ManifestInput {
  const known = current.domains.some((entry) => entry.domain === domain);
  if (webTagId === undefined) {
    if (known) return current;
    const message = 'is missing: the container has no such domain yet';
    throw new ManagementProblem('invalid_request', {
      detail: `webTagId ${message}`,
      errors: [{ path: 'webTagId', message }],
    });
  }
  const domains = known
    ? current.domains.map((entry) => (entry.domain === domain ? { ...entry, webTagId } : entry))
    : [...current.domains, { domain, webTagId, token: newToken('ct', draw) }];
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

interface Rotation {
  readonly token: string;
  /** The old token is accepted until this UTC date, so that pages with the old snippet keep working. */
  readonly until: string;
  /** A UTC date. */
  readonly today: string;
}

/** Throws if the manifest is full of old tokens that are still accepted: none is dropped before its grace date. */
export function rotateLoaderToken(current: Manifest, { token, until, today }: Rotation): ManifestInput {
  const previous = [{ token: current.loaderToken, until }, ...current.previousLoaderTokens];
  const accepted = previous.filter((one) => one.until > today);
  if (accepted.length > MOST_TOKENS) {
    // Without the current token, which isn't an old one yet: its grace may end before theirs.
    const [first = until] = accepted
      .slice(1)
      .map((one) => one.until)
      .sort();
    throw new ManagementProblem('too_many_loader_tokens', {
      detail: `${MOST_TOKENS} old tokens are still accepted; the first of them expires on ${first}`,
    });
  }
  return { ...current, loaderToken: token, previousLoaderTokens: accepted };
}

export function withServiceAccount(
  current: Manifest,
  serviceAccount: NonNullable<Manifest['serviceAccount']>,
): ManifestInput {
  return { ...current, serviceAccount };
}

export function withoutServiceAccount({ serviceAccount: _, ...rest }: Manifest): ManifestInput {
  return rest;
}

/** Names that the pair doesn't cover keep what they have. */
export function withCertificate(
  current: Manifest,
  pair: Pick<Manifest['tls'], 'certificate' | 'key'>,
): ManifestInput {
  const { mode, others } = current.tls;
  return { ...current, tls: { mode: 'uploaded', others: mode === 'uploaded' ? others : mode, ...pair } };
}

export function tombstone(current: Manifest): ManifestInput {
  if (current.protect) throw new ManagementProblem('site_protected');
  return { ...current, state: 'absent' };
}
