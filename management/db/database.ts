import type { ColumnType, Generated, Kysely } from 'kysely';
import type { Check, VerificationReport } from '../../edge/verification/contract.ts';
import type { PlanReport } from '../../gitops/report/report.ts';
import type { Health, SiteStateName } from '../../gitops/report/site-state.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import type { ProofStatus } from '../lifecycle/proof.ts';
import type { DatedState, DnsFacts } from '../lifecycle/site-facts.ts';
import type { ContainerStatus, EventKind, HostReason, StatusReason } from '../lifecycle/status.ts';
import type { OperationKind, OperationStatus, OperationStep, SagaStep } from '../lifecycle/steps.ts';
import type { Computed, CreatedAt, Json, UpdatedAt } from './columns.ts';
import type { ChecklistVerdicts, HandoverLinks } from './handover-tables.ts';
import type { ManifestView } from './manifest-view.ts';
import type { ImageRolloutSites, ImageRollouts } from './rollout-tables.ts';
import type {
  ClientMemberships,
  Clients,
  Invitations,
  OrganisationMemberships,
  Organisations,
  ServiceTokens,
} from './tenant-tables.ts';
import type { TrafficTables } from './traffic-tables.ts';

export interface Actor {
  readonly subject: string;
  readonly name: string;
  readonly email: string;
  /** The scopes of the service token that calls; absent: a person calls. */
  readonly scopes?: readonly string[];
}

interface Containers {
  id: string;
  /** Order of creation; lists are paged by it. */
  seq: Generated<string>;
  site_id: string;
  client_id: string;
  status: ContainerStatus;
  status_reason: StatusReason | null;
  status_detail: string | null;
  /** Derived like `state`. */
  health: Generated<Health>;
  /** What the host reports. */
  host_reason: Generated<HostReason | null>;
  host_detail: Generated<string | null>;
  /** Why the host refuses the newest manifest, whatever else it reports; `null`: it doesn't. */
  host_refusal: Generated<string | null>;
  manifest: Json<ManifestView>;
  revision: string | null;
  /** What the resolvers answered for its custom domains when they were asked last. */
  dns: ColumnType<DnsFacts, string | undefined, string>;
  /** When they are asked again; `null`: now. */
  dns_next_at: Generated<Date | null>;
  /** When a page first got its tags from here, by the records of requests. */
  first_visit_at: Generated<Date | null>;
  /** Derived from the columns above whenever one of them changes. */
  state: ColumnType<DatedState, string | undefined, string>;
  state_name: Computed<SiteStateName>;
  created_at: CreatedAt;
  updated_at: UpdatedAt;
  /** Its name, its site’s id and every name that it serves, without case and accents, one per line. */
  words: Computed<string>;
  folded_name: Computed<string>;
  suspended: Computed<boolean>;
}

/** A part of a count: the rows that agree in all but `containers` add up to the count. */
interface ContainerCounts {
  client_id: string;
  status: ContainerStatus;
  health: Health;
  suspended: boolean;
  state: SiteStateName;
  containers: number;
}

interface PortPool {
  host: string;
  processing: number;
  preview: number;
  leased_by: string | null;
}

interface DomainClaims {
  domain: string;
  container_id: string;
  /** Ids of unfinished changes that want the name. */
  changes: Generated<string[]>;
  /** Start of the newest of them. */
  changed_at: Date | null;
}

interface DomainProofs {
  client_id: string;
  /** A registrable domain. */
  domain: string;
  status: ProofStatus;
  /** When it got the status. */
  since: Generated<Date>;
  seen_at: Date | null;
  absent_since: Date | null;
  checked_at: Date | null;
  next_at: Generated<Date>;
  settled: Generated<boolean>;
  held_until: Date | null;
}

interface Sites {
  site_id: string;
  container_id: string;
  host: string;
  /** All three are `null` once the site is gone: then other sites may use the names. */
  edge_hostname: string | null;
  origin_hostname: string | null;
  preview_hostname: string | null;
  /** Revision and blob of the manifest that was projected last. */
  revision: string | null;
  blob: string | null;
}

interface SiteDomains {
  domain: string;
  kind: 'page' | 'custom';
  site_id: string;
  web_tag_id: string | null;
  container_token: string | null;
  active: boolean;
}

interface Operations {
  id: string;
  seq: Generated<string>;
  container_id: string;
  kind: OperationKind;
  status: Generated<OperationStatus>;
  step: SagaStep;
  /** The manifest to commit, with the encrypted configuration; only while a creation runs. */
  manifest: ColumnType<Manifest | null, string | null, null>;
  /** Id of the provisioner's own operation that this one follows. */
  provisioner_operation: string | null;
  actor: Json<Actor>;
  request_id: string;
  reason: StatusReason | null;
  detail: string | null;
  /** The commit that it has made. */
  revision: Generated<string | null>;
  /** The steps that it has ended; a trigger of the database records them. */
  steps: ColumnType<OperationStep[], never, never>;
  /** The last steps of the provisioner's own operation. */
  host_steps: ColumnType<OperationStep[], never, string>;
  created_at: CreatedAt;
  updated_at: UpdatedAt;
}

interface ContainerEvents {
  seq: Generated<string>;
  /** Numbered in the order of commits; `null` only until the commit. */
  position: Generated<string>;
  container_id: string;
  at: CreatedAt;
  kind: EventKind;
  status: ContainerStatus;
  /** The new state, in an event of that kind. */
  state: Generated<SiteStateName | null>;
  reason: StatusReason | null;
  detail: string | null;
  actor: string | null;
  request_id: string | null;
  revision: string | null;
}

interface Webhooks {
  id: string;
  seq: Generated<string>;
  /** Either this or `organisation_id` is `null`. */
  client_id: string | null;
  organisation_id: string | null;
  url: string;
  events: Json<EventKind[]>;
  enabled: boolean;
  secret: string;
  /** Signs beside the new one after a rotation. */
  previous_secret: string | null;
  previous_until: Date | null;
  /** Failed attempts in a row, of all its queues. */
  failures: Generated<number>;
  paused_until: Date | null;
  /** What its owner should know: a dead delivery, or why it was switched off. */
  notice: string | null;
  notice_at: Date | null;
  /** Subject of who made or last changed it; `null`: not known. */
  changed_by: Generated<string | null>;
  created_at: CreatedAt;
  updated_at: UpdatedAt;
}

interface WebhookDeliveries {
  id: Generated<string>;
  webhook_id: string;
  /** The container of its event; for a test message, the webhook. Deliveries of one queue are sent in order. */
  queue: string;
  /** `null`: a test. */
  event_seq: string | null;
  position: Generated<string>;
  kind: EventKind | 'test';
  status: Generated<'pending' | 'delivered' | 'dead'>;
  attempts: Generated<number>;
  /** HTTP status of the last attempt. */
  answer: number | null;
  error: string | null;
  queued_at: CreatedAt;
  attempted_at: Date | null;
}

interface WebhookQueues {
  webhook_id: string;
  queue: string;
  newest: string;
  attempts: number;
  /** When its next delivery is due, or when the lease of the process that sends it ends; `null`: it is empty. */
  due_at: Date | null;
  lease: string | null;
}

interface Plans {
  checksum: string;
  /** As it was asked for; `null`: the newest revision. */
  ref: string | null;
  report: Json<PlanReport>;
  actor: string;
  created_at: ColumnType<Date, never, Date>;
  approved_at: Date | null;
}

interface Verifications {
  seq: Generated<string>;
  container_id: string;
  status: VerificationReport['status'];
  checked_at: ColumnType<Date, string, never>;
  checks: Json<Check[]>;
}

/** What counts against a limit before the database shows it. */
interface PlaceHolds {
  places: string;
  /** The change whose commit makes the thing. */
  change: string;
  thing: string;
  until: Date;
}

interface IdempotencyKeys {
  subject: string;
  key: string;
  body_hash: string;
  /** `null`: the creation of something else. */
  container_id: string | null;
  answer: ColumnType<unknown, string | null, string>;
  created_at: CreatedAt;
  /** The id of what is created, where that is no container. */
  made: Generated<string | null>;
  /** Until then, an attempt without an answer counts as running. */
  running_until: Generated<Date | null>;
}

interface AuditLog {
  seq: Generated<string>;
  at: CreatedAt;
  actor: string;
  /** The endpoint's `operationId` in OpenAPI. */
  action: string;
  request_id: string;
  container_id: string | null;
  client_id: string | null;
  /** Set if the row is about the organisation, its members, invitations, tokens or webhooks, not about a client. */
  organisation_id: Generated<string | null>;
  /** HTTP status of the answer; `null`: the process ended before it answered. */
  status: number | null;
  code: string | null;
  revision: string | null;
  /** What the refusals that this row sums have in common; `null`: the row is about one request. */
  sums: Generated<string | null>;
  /** How many requests this row is about. */
  count: Generated<number>;
}

interface Sessions {
  /** SHA-256 of the cookie's value, hexadecimal. */
  id_hash: string;
  subject: string;
  name: string;
  email: string;
  /** The provider's own id of the login. */
  provider_session: string | null;
  /** The provider's tokens, encrypted with a key that only the cookie's value yields. */
  sealed: string;
  created_at: ColumnType<Date, Date, never>;
  seen_at: Date;
  refreshed_at: Date;
}

export interface Tables extends TrafficTables {
  clients: Clients;
  client_memberships: ClientMemberships;
  organisations: Organisations;
  organisation_memberships: OrganisationMemberships;
  service_tokens: ServiceTokens;
  invitations: Invitations;
  containers: Containers;
  container_counts: ContainerCounts;
  port_pool: PortPool;
  domain_claims: DomainClaims;
  domain_proofs: DomainProofs;
  sites: Sites;
  site_domains: SiteDomains;
  operations: Operations;
  container_events: ContainerEvents;
  webhooks: Webhooks;
  webhook_deliveries: WebhookDeliveries;
  webhook_queues: WebhookQueues;
  plans: Plans;
  installation_key: { key: string };
  place_holds: PlaceHolds;
  verifications: Verifications;
  idempotency_keys: IdempotencyKeys;
  audit_log: AuditLog;
  sessions: Sessions;
  image_rollouts: ImageRollouts;
  image_rollout_sites: ImageRolloutSites;
  handover_links: HandoverLinks;
  checklist_verdicts: ChecklistVerdicts;
}

/** A connection pool or an open transaction. Repository functions take either as their first argument. */
export type Database = Kysely<Tables>;
