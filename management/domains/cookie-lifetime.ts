import { safariVerdict } from '../../edge/verification/safari.ts';
import { registrableDomain } from '../../sites/manifest/schema.ts';
import type { HostAnswer } from '../clients/resolvers.ts';
import type { CustomDomainView } from './domain-states.schema.ts';

type Lifetime = CustomDomainView['cookieLifetime'];

/** A host with what the resolvers answer. */
export interface ResolvedHost {
  readonly name: string;
  readonly answers: readonly HostAnswer[];
}

/** How long Safari keeps the cookies that a host sets for pages of `page`; the best of several hosts counts. */
export function cookieLifetime(page: ResolvedHost, hosts: readonly ResolvedHost[]): Lifetime {
  const verdicts = hosts.map((host) => lifetimeBy(page, host));
  return (
    verdicts.find(({ verdict }) => verdict === 'full') ??
    verdicts.find(({ verdict }) => verdict === 'seven_days') ??
    verdicts[0] ?? { verdict: 'unknown', reason: 'no host serves the tags' }
  );
}

function lifetimeBy(page: ResolvedHost, tag: ResolvedHost): Lifetime {
  const [seenPage, seenTag] = [namesOf(page), namesOf(tag)];
  const isSameSite = seenTag.registrable !== null && seenTag.registrable === seenPage.registrable;
  const unresolved = [page, tag].find((host) => namesOf(host).addresses.length === 0);
  // Addresses don't matter for a host under another registrable domain, or with an alias.
  if (isSameSite && seenTag.alias === null && unresolved !== undefined) {
    return { verdict: 'unknown', reason: `${unresolved.name} doesn’t resolve` };
  }
  const reason = safariVerdict(seenPage, seenTag);
  return reason === null ? { verdict: 'full', reason } : { verdict: 'seven_days', reason };
}

function firstAnswer({ answers }: ResolvedHost): HostAnswer | undefined {
  return answers.find(({ problem }) => problem === null);
}

function namesOf(host: ResolvedHost) {
  const { addresses = [], aliases = [] } = firstAnswer(host) ?? {};
  const alias = aliases.at(-1) ?? null;
  return {
    name: host.name,
    addresses: [...addresses],
    alias,
    registrable: registrableDomain(host.name),
    aliasRegistrable: alias === null ? null : registrableDomain(alias),
  };
}
