import { ProblemError, type ProblemOptions } from '../../base/http/problem.ts';
import type { SitesRepoError } from '../../sites/repo/errors.ts';

/** Every error code that the management API answers with, its HTTP status, and the title that explains it. */
export const MANAGEMENT_ERRORS = {
  invalid_request: [400, 'The request is not valid for this endpoint'],
  invalid_login: [
    400,
    'The login was not begun in this browser, has ended, or was answered already; begin it again',
  ],
  missing_token: [401, 'The request carries no bearer token'],
  invalid_token: [401, 'The bearer token is not one that this API accepts'],
  expired_token: [401, 'The bearer token has expired'],
  expired_session: [401, 'The session has ended; log in again'],
  cross_site: [403, 'A session counts only for requests of pages of this origin'],
  forbidden: [403, 'The caller’s role doesn’t allow this'],
  not_found: [404, 'There is nothing at this address'],
  unknown_client: [404, 'There is no such client, or the caller is not a member of it'],
  unknown_organisation: [404, 'There is no such organisation, or the caller is not a member of it'],
  unknown_commit: [404, 'No such commit changed the container'],
  unknown_container: [404, 'There is no such container, or the caller is not a member of its client'],
  unknown_token: [404, 'There is no such service token, or the caller may not manage it'],
  unknown_invitation: [404, 'There is no such invitation, or it was accepted, was revoked or has expired'],
  unknown_handover_link: [404, 'There is no such link, or it was revoked or has expired'],
  unknown_domain: [404, 'The container has no such domain'],
  unknown_loader_token: [404, 'The container has no such old loader token'],
  unknown_member: [404, 'The subject is not a member of the client or organisation'],
  unknown_operation: [404, 'There is no such operation, or the caller may not read its container'],
  unknown_plan: [404, 'There is no such plan; make a new one'],
  unknown_rollout: [404, 'There is no such image rollout'],
  unknown_policy: [404, 'There is no policy script'],
  unknown_ref: [404, 'The sites repository has no such branch or commit'],
  unknown_webhook: [
    404,
    'There is no such webhook, or the caller is not a member of its client or organisation',
  ],
  unknown_delivery: [404, 'The webhook has no such delivery'],
  method_not_allowed: [405, 'The address doesn’t accept this method; the header `allow` lists its methods'],
  request_timeout: [408, 'The request was not sent in time'],
  container_busy: [409, 'The container is still being created; try again in a moment'],
  domain_in_use: [409, 'Another site or client holds one of the domains'],
  last_owner: [409, 'A client or organisation keeps at least one owner'],
  client_in_use: [409, 'The client has containers; remove or transfer them first'],
  client_archived: [409, 'The client is archived; unarchive it first'],
  organisation_in_use: [409, 'The organisation has clients; archive or move them first'],
  organisation_archived: [409, 'The organisation is archived; unarchive it first'],
  limit_reached: [409, 'A limit of the installation is reached; `detail` names it'],
  tenant_file_broken: [
    409,
    'The file of the client or organisation in the sites repository is invalid; fix it there first',
  ],
  last_domain: [409, 'A container keeps at least one domain'],
  quota_reached: [409, 'The zone has no room for the site; only the operator can make room'],
  commit_refused: [409, 'The server of the sites repository refuses the commit; `detail` has its words'],
  manifest_broken: [409, 'The site’s manifest in the sites repository is invalid; fix it there first'],
  request_in_progress: [409, 'The first request with this Idempotency-Key is still being answered'],
  too_many_loader_tokens: [409, 'A rotation would drop a loader token before its grace date'],
  too_many_forwarder_tokens: [409, 'A rotation would drop a forwarder’s token before its grace time ends'],
  revert_conflict: [409, 'Later commits have changed what the revert would change; `errors` names it'],
  too_many_webhooks: [409, 'The client or organisation has the allowed number of webhooks already'],
  site_protected: [409, 'The manifest protects the site from removal'],
  rollout_active: [409, 'Another image rollout is active; stop it, or wait for its end'],
  rollout_ended: [409, 'The image rollout has ended; start a new one'],
  webhook_disabled: [409, 'The webhook is switched off; switch it on first'],
  wrong_status: [409, 'The container’s status doesn’t allow this'],
  precondition_failed: [412, 'The object isn’t the version that If-Match names'],
  plan_changed: [412, 'What would be done is not what was planned any more; make a new plan and review it'],
  body_too_large: [413, 'The request body is too large'],
  uri_too_long: [414, 'A part of the address is too long'],
  unsupported_media_type: [415, 'The request body must be application/json'],
  expectation_failed: [417, 'The service doesn’t do what the request’s `expect` header asks for'],
  address_refused: [422, 'The address is not a public one that may be called'],
  foreign_domain: [422, 'The custom domain is not under the registrable part of any of the site’s domains'],
  idempotency_key_reused: [422, 'The Idempotency-Key was used with another request'],
  image_not_allowed: [422, 'The image is from a repository that IMAGE_REPOSITORIES doesn’t name'],
  invalid_container_config: [422, 'The container configuration doesn’t have Tag Manager’s form'],
  invalid_certificate: [422, 'The pair can’t serve any of the container’s names'],
  invalid_service_account: [422, 'The body is not the key of a Google Cloud service account'],
  invalid_policy: [422, 'The policy script can’t be parsed, or is too large'],
  rate_limited: [429, 'Too many requests in a minute'],
  too_many_streams: [429, 'The caller has too many event streams or exports open'],
  headers_too_large: [431, 'The request line and headers are too large'],
  internal: [500, 'Something went wrong inside the management API'],
  search_unavailable: [503, 'Requests can’t be searched now; `detail` says why'],
  host_unavailable: [502, 'The provisioner doesn’t answer; try again in a moment'],
  provisioning_failed: [502, 'The provisioner did not accept the container'],
  verification_unavailable: [502, 'The verification worker can’t be reached; the status is unchanged'],
  auth_unavailable: [503, 'The keys that verify tokens can’t be fetched'],
  database_unavailable: [503, 'The database can’t be reached; try again in a moment'],
  login_unavailable: [503, 'The identity provider can’t be reached; try again in a moment'],
  no_login: [503, 'This installation has no OIDC_CLIENT_ID, so people can’t log in here'],
  no_free_port: [503, 'The port pool is empty'],
  no_forwarder_key: [503, 'This installation has no FORWARDER_KEY, so it can’t make tokens for forwarders'],
  projection_failed: [
    503,
    'The change is committed, but the database doesn’t show it yet; don’t repeat the request',
  ],
  stopping: [503, 'The management API is stopping; try again in a moment'],
  sites_repo_unavailable: [503, 'The sites repository can’t be read or written'],
} as const satisfies Record<string, readonly [status: number, title: string]>;

export type ManagementErrorCode = keyof typeof MANAGEMENT_ERRORS;

interface Members {
  /** Id of the container that the failed request created. */
  readonly container?: string;
}

/** A problem answer of the management API. */
export class ManagementProblem extends ProblemError<typeof MANAGEMENT_ERRORS, Members> {
  constructor(code: ManagementErrorCode, options: ProblemOptions & Members = {}) {
    super(MANAGEMENT_ERRORS, code, options);
  }
}

/** `commit_refused`, or `sites_repo_unavailable`: then a commit may exist. */
export function repoProblem(cause: SitesRepoError): ManagementProblem {
  return cause.refusal === null
    ? new ManagementProblem('sites_repo_unavailable', { cause })
    : new ManagementProblem('commit_refused', { detail: cause.refusal, cause });
}
