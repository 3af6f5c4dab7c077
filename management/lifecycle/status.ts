/** Where a container stands in its life. */
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

/** Every step that a status may take; there are no others. `removed → provisioning`: git brings the site back. */
export const TRANSITIONS: Readonly<Record<ContainerStatus, readonly ContainerStatus[]>> = {
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

/** The statuses from which `to` may be reached in one step. */
export function predecessors(to: ContainerStatus): ContainerStatus[] {
  return STATUSES.filter((from) => canMove(from, to));
}

/** Statuses in which git wants the site and its infrastructure stands, or is being made. */
export const LIVE: readonly ContainerStatus[] = ['provisioning', 'active', 'verified', 'verification_failed'];

/** Of what runs for a container: `degraded` answers badly or not at all, or can't be brought to what git says. */
export const HEALTHS = ['unknown', 'healthy', 'degraded'] as const;
export type Health = (typeof HEALTHS)[number];

export const EVENT_KINDS = ['status', 'changed', 'manifest_refused', 'host'] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

/** Why a status is what it is, or why git's newest word isn't followed: a closed set for dashboards. */
export const STATUS_REASONS = {
  provisioner_unreachable: 'the provisioner could not be reached',
  provisioner_refused: 'the provisioner refused the site',
  provisioning_failed: 'the provisioner accepted the site and could not bring it up',
  sites_repo_unavailable: 'the sites repository could not be written',
  site_taken: 'the sites repository already holds another site of this name',
  port_taken: 'one of the site’s ports was leased to another site meanwhile',
  domain_in_use: 'another site holds one of the domains',
  checks_failed: 'the last verification found something that doesn’t work',
  host_trouble: 'the host can’t bring the site to what git says; what stands is the last good state',
  invalid_manifest: 'the newest manifest in the sites repository is refused; the one before it stays',
} as const;
export type StatusReason = keyof typeof STATUS_REASONS;

/** Reasons that say that git's newest word isn't followed yet; they go when it is. */
export const PROJECTION_REASONS: readonly StatusReason[] = [
  'port_taken',
  'domain_in_use',
  'invalid_manifest',
];
