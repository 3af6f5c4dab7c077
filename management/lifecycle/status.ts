/** The statuses in the life of a container. */
export const STATUSES = [
  'provisioning',
  'active',
  'verified',
  'verification_failed',
  'failed',
  'deprovisioning',
  'removed',
] as const;
export type ContainerStatus = (typeof STATUSES)[number];

/** All transitions of a status. `removed → provisioning`: git brings the site back. */
const TRANSITIONS: Readonly<Record<ContainerStatus, readonly ContainerStatus[]>> = {
  provisioning: ['active', 'failed', 'deprovisioning'],
  active: ['verified', 'verification_failed', 'deprovisioning'],
  verified: ['verification_failed', 'deprovisioning'],
  verification_failed: ['verified', 'deprovisioning'],
  failed: ['deprovisioning'],
  deprovisioning: ['removed'],
  removed: ['provisioning'],
};

export function canMove(from: ContainerStatus, to: ContainerStatus): boolean {
  return TRANSITIONS[from].includes(to);
}

/** The transitions that bring a removed, failed or deprovisioning container back to `provisioning`. */
export function restorePath(from: ContainerStatus): ContainerStatus[] {
  const path: ContainerStatus[] = ['deprovisioning', 'removed', 'provisioning'];
  return path.slice(path.findIndex((status) => canMove(from, status)));
}

/** Statuses in which git has the site, and its infrastructure is up or being created. */
export const LIVE: readonly ContainerStatus[] = ['provisioning', 'active', 'verified', 'verification_failed'];

/** Statuses in which the host may still have something of the site, so that what it reports counts. */
export const WATCHED: readonly ContainerStatus[] = [...LIVE, 'deprovisioning'];

export const EVENT_KINDS = [
  'status',
  'state',
  'changed',
  'manifest_refused',
  'host',
  'proof',
  'policy',
] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

/** Why a container has its status, or why the newest manifest in git isn't applied: a closed set for dashboards. */
export const STATUS_REASONS = {
  provisioner_unreachable: 'the provisioner could not be reached',
  provisioner_refused: 'the provisioner refused the site',
  provisioning_failed: 'the provisioner accepted the site and could not bring it up',
  sites_repo_unavailable: 'the sites repository could not be written',
  site_taken: 'the sites repository already holds another site of this name',
  port_taken: 'one of the site’s ports is leased to another site',
  domain_in_use: 'another site or client holds one of the domains',
  checks_failed: 'the last verification found something that doesn’t work',
  suspended:
    'the manifest has suspend: true; until the site is resumed, changes wait and nothing is repaired',
  serving_off: 'the manifest has serving: false; until the site is resumed, the edge answers nothing of it',
  host_trouble: 'the host reports a fault, or can’t apply what git says; the last good state keeps running',
  host_partial: 'the host reports that some of the site’s servers fail; the others serve',
  host_refused: 'the host refuses the newest manifest; the last one that it accepted stays applied',
  host_silent:
    'the host has reported nothing since the time in statusDetail: how the site is now isn’t known',
  removal_held: 'git no longer has the site, and the host waits with the removal; statusDetail says what for',
  domain_unproven:
    'a domain is not proven to be the client’s, or the record that proves it is missing; statusDetail has the record',
  invalid_manifest: 'the newest manifest in the sites repository is refused; the one before it stays applied',
} as const;
export type StatusReason = keyof typeof STATUS_REASONS;

/** Reasons that say that the newest manifest in git isn't applied yet. They are cleared once it is. */
const PROJECTION_REASONS: readonly StatusReason[] = ['port_taken', 'domain_in_use', 'invalid_manifest'];

/** Reasons that come from the host's report. They are shown if there is no other reason. */
export type HostReason = Extract<
  StatusReason,
  'host_trouble' | 'host_partial' | 'host_refused' | 'host_silent' | 'removal_held' | 'suspended'
>;

export function isProjectionReason(reason: StatusReason | null): boolean {
  return reason !== null && PROJECTION_REASONS.includes(reason);
}
