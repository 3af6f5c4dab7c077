import { isCertificate } from '../report/is-certificate.ts';
import { type CertificateState, meaningOf, REASONS, type Reason, type ShownSite } from '../report/report.ts';
import type { SiteStateName } from '../report/site-state.ts';
import { type Drift, describeDrift } from './live.ts';
import { isBad } from './site-states.ts';

/** One problem of a site, with what the operator can do about it. */
export interface SiteProblem {
  readonly site: string;
  readonly reason: Reason | CertificateState | SiteStateName | 'ServingOff';
  readonly message: string;
  readonly meaning: string;
  readonly remedy: string;
}

/** What the operator does about a condition; `null`: nothing, the site is well. */
const REMEDIES: Readonly<Record<Reason, string | null>> = {
  Ready: null,
  Removed: null,
  Progressing: 'Wait; tagyard status shows the progress.',
  Removing: 'Wait; tagyard status shows the progress.',
  Retrying: 'Wait for the next retry. If the same error returns, fix what the message names.',
  QuotaReached: 'Do what the message says, then run tagyard apply. Other sites are not affected.',
  Failed: 'Fix what the message names (manifest, host or permission), then run tagyard apply.',
  ObserveFailed:
    'Check that the named target answers and that its token is valid. It is read again automatically.',
  InvalidManifest:
    'Fix the file that the message names (tagyard validate checks manifests), or run tagyard revert for the site.',
  UnsupportedVersion: 'Upgrade Tagyard on this host, or run tagyard revert for the site.',
  UndecryptableConfig:
    'Encrypt the named secret to this host’s AGE_RECIPIENT, or restore the host’s AGE_IDENTITY_FILE.',
  NameTaken: 'Give the site, or the one that the message names, another name, port or token, or remove one.',
  Conflict: 'Remove the foreign object, or set adopt: true in the manifest to take it over.',
  Suspended: 'Run tagyard resume for the site when its changes may be applied.',
  Blocked:
    'Check tagyard plan. If the changes are intended, run tagyard approve with its checksum; if not, run tagyard revert.',
  Frozen:
    'Remove what the message names (the file freeze in STATE_DIR, or the annotation of the Lease), then run tagyard apply.',
  CertificatePending:
    'Fix what the message names (tls, DNS, a file, port 80 from outside, the authority). It is checked again automatically.',
  SourceUnavailable:
    'Make SITES_REPO reachable again: check the network, the address, the credentials and the branch. It is read again automatically.',
  NotIsolated:
    'Install iptables and run the provisioner with CAP_NET_ADMIN (or as root), or accept this: CONTAINER_FIREWALL=off.',
  Unhealthy:
    'Wait for the repair. If it returns, see what the container has printed, and give it more memory or CPU.',
  Drifted: 'Undo the change in the target, or set DRIFT_MODES to enforce for this target.',
  RepairLoop:
    'Find what else changes the object: another installation, a script, a person. It is repaired again later.',
};

/** The same for a certificate state, which can be bad while the site is ready; `null`: the certificate is well. */
const CERTIFICATES: Readonly<Record<CertificateState, { meaning: string; remedy: string } | null>> = {
  live: null,
  pending_dns: {
    meaning: 'the name does not lead to this host',
    remedy: 'Create the DNS record that the message names. It is checked again automatically.',
  },
  pending_certificate: {
    meaning: 'the name has no certificate',
    remedy: 'Fix what the message names (tls, a file, CAA records, port 80 from outside, the authority).',
  },
  drifted: {
    meaning: 'the certificate is still served, but is not renewed',
    remedy: 'Fix what the message names before the certificate expires.',
  },
  expired: { meaning: 'the certificate has expired', remedy: 'Fix what the message names.' },
};

/**
 * The condition alone if it is a problem, or a bad state that management knows of; otherwise a suspension, switched-off
 * serving and bad certificates.
 */
export function findingsOf(shown: ShownSite): SiteProblem[] {
  const { site, reason, message, resources, suspended, servingOff, applied, state } = shown;
  const remedy = REMEDIES[reason];
  if (remedy !== null) {
    const isFirst = applied === null && meaningOf(reason) === 'refused';
    const meaning = isFirst
      ? 'its manifest is refused, and nothing of it was applied before'
      : REASONS[reason];
    return [{ site, reason, message, meaning, remedy }];
  }
  if (isBad(state)) {
    const { name, detail, sentence } = state;
    return [
      { site, reason: name, message: detail ?? sentence, meaning: sentence, remedy: state.remedy ?? '' },
    ];
  }
  const suspension: SiteProblem = {
    site,
    reason: 'Suspended',
    message: 'no change is pending',
    meaning: 'the manifest says suspend: true, so nothing is changed or repaired',
    remedy: 'Run tagyard resume for the site when its changes may be applied.',
  };
  const off: SiteProblem = {
    site,
    reason: 'ServingOff',
    message: 'the edge answers nothing of the site',
    meaning: 'the manifest says serving: false',
    remedy: 'Run tagyard resume for the site when it may be served.',
  };
  return [
    ...(suspended ? [suspension] : []),
    ...(servingOff ? [off] : []),
    ...certificateProblems(site, resources),
  ];
}

/** The finding for a resource that differs now from what was applied. */
export function driftFinding(change: Drift): SiteProblem {
  return {
    site: change.site,
    reason: 'Drifted',
    message: describeDrift(change),
    meaning: 'an object differs from what was applied',
    remedy:
      change.held.length === 0
        ? 'Find what changed it. The next full pass repairs it; tagyard apply does so now.'
        : `Find what changed it. It is not repaired now (${change.held.join(', ')}).`,
  };
}

function certificateProblems(site: string, resources: ShownSite['resources']): SiteProblem[] {
  return resources.flatMap((resource): SiteProblem[] => {
    if (!isCertificate(resource)) return [];
    const problem = CERTIFICATES[resource.state];
    if (problem === null) return [];
    return [{ site, reason: resource.state, message: `${resource.key}: ${resource.reason}`, ...problem }];
  });
}
