import type { ColumnType, Generated, Kysely } from 'kysely';
import type { Check, VerificationReport } from '../../edge/verification/contract.ts';
import type { Manifest } from '../../gitops/manifest/schema.ts';
import type { ContainerStatus, EventKind, Health, StatusReason } from '../lifecycle/status.ts';
import type { OperationKind, OperationStatus, SagaStep } from '../lifecycle/steps.ts';
import type { ManifestView } from './manifest-view.ts';

/** JSON columns are read as data and written as text: drivers disagree on how to write arrays. */
type Json<T> = ColumnType<T, string, string>;
type CreatedAt = ColumnType<Date, never, never>;
type UpdatedAt = ColumnType<Date, never, Date>;

export interface Actor {
  readonly subject: string;
  readonly name: string;
  readonly email: string;
}

interface Clients {
  id: string;
  name: string;
  created_at: CreatedAt;
}

interface ClientMemberships {
  client_id: string;
  subject: string;
  role: string;
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
  /** Health of the site's containers on their host. */
  health: Generated<Health>;
  manifest: Json<ManifestView>;
  revision: string | null;
  created_at: CreatedAt;
  updated_at: UpdatedAt;
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
  created_at: CreatedAt;
  updated_at: UpdatedAt;
}

interface ContainerEvents {
  seq: Generated<string>;
  container_id: string;
  at: CreatedAt;
  kind: EventKind;
  status: ContainerStatus;
  reason: StatusReason | null;
  detail: string | null;
  actor: string | null;
  request_id: string | null;
  revision: string | null;
}

interface Verifications {
  seq: Generated<string>;
  container_id: string;
  status: VerificationReport['status'];
  checked_at: ColumnType<Date, string, never>;
  checks: Json<Check[]>;
}

interface IdempotencyKeys {
  subject: string;
  key: string;
  body_hash: string;
  container_id: string;
  answer: ColumnType<unknown, string | null, string>;
  created_at: CreatedAt;
}

interface AuditLog {
  seq: Generated<string>;
  at: CreatedAt;
  actor: string;
  /** Operation id of the endpoint. */
  action: string;
  request_id: string;
  container_id: string | null;
  client_id: string | null;
  /** HTTP status of the answer; `null`: the process ended before it answered. */
  status: number | null;
  code: string | null;
  revision: string | null;
}

export interface Tables {
  clients: Clients;
  client_memberships: ClientMemberships;
  containers: Containers;
  port_pool: PortPool;
  domain_claims: DomainClaims;
  sites: Sites;
  site_domains: SiteDomains;
  operations: Operations;
  container_events: ContainerEvents;
  verifications: Verifications;
  idempotency_keys: IdempotencyKeys;
  audit_log: AuditLog;
}

/** A connection pool or an open transaction. Repository functions take either as their first argument. */
export type Database = Kysely<Tables>;
