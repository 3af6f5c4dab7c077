import {
  type Health,
  type SiteFacts,
  type SiteState,
  siteHealth,
  siteState,
} from '../../gitops/report/site-state.ts';
import { isActiveDomain } from '../../plugins/multi_domain/config.ts';
import { isFirstPartyHost, isProven, type Manifest, provenHosts } from '../../sites/manifest/schema.ts';
import {
  type ContainerStatus,
  type HostReason,
  isProjectionReason,
  LIVE,
  type StatusReason,
} from './status.ts';

/** A state with the time since which the container has it (ISO 8601). */
export interface DatedState extends SiteState {
  readonly since: string;
}

/** What the resolvers answered for a custom domain. */
interface DnsFact {
  readonly status: 'ok' | 'missing' | 'wrong' | 'unknown';
  readonly detail: string | null;
  /** Since when they have answered so (ISO 8601). */
  readonly since: string;
}
export type DnsFacts = Readonly<Record<string, DnsFact>>;

/** What a container's state is made of. */
export interface StateBasis {
  readonly status: ContainerStatus;
  readonly status_reason: StatusReason | null;
  readonly status_detail: string | null;
  readonly host_reason: HostReason | null;
  readonly host_detail: string | null;
  readonly host_refusal: string | null;
  readonly dns: DnsFacts;
  readonly manifest: Pick<
    Manifest,
    'customDomains' | 'unproven' | 'domains' | 'features' | 'suspend' | 'serving'
  >;
}

/** The state of a container and its health. The state’s time is that of `before`, unless the name has changed. */
export function derivedOf(
  known: StateBasis,
  before: DatedState | null,
  now: Date,
): { readonly state: DatedState; readonly health: Health } {
  const facts = factsOf(known);
  const state = siteState(facts);
  const since = before?.name === state.name ? before.since : now.toISOString();
  return { state: { ...state, since }, health: siteHealth(facts) };
}

/** Whether the domain is in DNS, as far as that is known. */
function isInDns(dns: DnsFacts, domain: string): boolean {
  const status = dns[domain]?.status;
  return status !== 'missing' && status !== 'wrong';
}

function factsOf(known: StateBasis): SiteFacts {
  const { status, status_detail, host_reason, host_detail, host_refusal, manifest } = known;
  const isHeld = host_reason === 'removal_held' || (status === 'deprovisioning' && host_refusal !== null);
  const isLive = LIVE.includes(status) || isHeld;
  const isUp = isLive && status !== 'provisioning';
  return {
    removal: status === 'removed' ? 'done' : status === 'deprovisioning' && !isHeld ? 'running' : null,
    isOff: isLive && manifest.serving === false,
    fault: faultOf(known, isUp),
    partial: isUp && host_reason === 'host_partial' ? { detail: host_detail } : null,
    silence: isUp && host_reason === 'host_silent' ? { detail: host_detail } : null,
    refusal: isHeld ? { of: 'removal', detail: host_refusal } : refusalOf(known, isLive),
    setup: status === 'provisioning' ? { detail: status_detail ?? host_detail } : null,
    unserved: isUp ? unservedDomains(known) : [],
    pause: isLive && manifest.suspend ? { detail: host_reason === 'suspended' ? host_detail : null } : null,
  };
}

function faultOf(
  { status, status_reason, status_detail, host_reason, host_detail }: StateBasis,
  isUp: boolean,
): SiteFacts['fault'] {
  if (status === 'failed') {
    const remedy = status_reason === null ? undefined : CREATION_REMEDIES[status_reason];
    return { of: 'setup', detail: status_detail, remedy };
  }
  if (!isUp) return null;
  if (host_reason === 'host_trouble') return { of: 'host', detail: host_detail };
  if (status !== 'verification_failed') return null;
  return { of: 'checks', detail: isProjectionReason(status_reason) ? null : status_detail };
}

function refusalOf(
  { status_reason, status_detail, host_refusal }: StateBasis,
  isLive: boolean,
): SiteFacts['refusal'] {
  if (isProjectionReason(status_reason))
    return { of: status_reason === 'invalid_manifest' ? 'manifest' : 'claim', detail: status_detail };
  return isLive && host_refusal !== null ? { of: 'manifest', detail: host_refusal } : null;
}

/** What is done about a creation that failed. */
const CREATION_REMEDIES: Partial<Record<StatusReason, string>> = {
  provisioner_unreachable: 'Create it again once the host’s provisioner answers.',
  sites_repo_unavailable: 'Create it again once the sites repository can be written.',
  site_taken: 'Create it under another name.',
};

/**
 * What the domains of the pages wait for, if none of them is served. A domain's pages load their tags from its own
 * server, from its first-party custom domains, or if it has none, from the edge hostname.
 */
function unservedDomains({ manifest, dns }: StateBasis): string[] {
  const active = manifest.domains.filter((_, index) => isActiveDomain(index, manifest.features.multi_domain));
  const waits = active.map(({ domain, sameOrigin }) => {
    if (sameOrigin !== undefined && isProven(manifest, domain)) return [];
    const own = provenHosts(manifest).filter((host) => isFirstPartyHost(host, [domain]));
    return own.some((host) => isInDns(dns, host)) ? [] : own;
  });
  if (waits.some((hosts) => hosts.length === 0)) return [];
  return [...new Set(waits.flat())].map((host) => dns[host]?.detail ?? host);
}
