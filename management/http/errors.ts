import { ProblemError, type ProblemOptions } from '../../gitops/base/http/problem.ts';

/** Every error code that the management API answers with, its HTTP status, and the title that explains it. */
export const MANAGEMENT_ERRORS = {
  invalid_request: [400, 'The request is not valid for this endpoint'],
  missing_token: [401, 'The request carries no bearer token'],
  invalid_token: [401, 'The bearer token is not one that this API accepts'],
  expired_token: [401, 'The bearer token has expired'],
  forbidden: [403, 'The caller’s role doesn’t allow this'],
  not_found: [404, 'There is nothing at this address'],
  unknown_client: [404, 'There is no such client, or the caller is not a member of it'],
  unknown_container: [404, 'There is no such container, or the caller is not a member of its client'],
  unknown_domain: [404, 'The container has no such domain'],
  unknown_member: [404, 'The subject is not a member of the client'],
  method_not_allowed: [405, 'The address doesn’t accept this method; the header `allow` lists its methods'],
  request_timeout: [408, 'The request was not sent in time'],
  container_busy: [409, 'The container is still being created; try again in a moment'],
  domain_in_use: [409, 'Another site or client holds one of the domains'],
  last_owner: [409, 'A client keeps at least one owner'],
  last_domain: [409, 'A container keeps at least one domain'],
  quota_reached: [409, 'The zone has no room for the site; only the operator can make room'],
  manifest_broken: [409, 'The site’s manifest in the sites repository is invalid; fix it there first'],
  request_in_progress: [409, 'The first request with this Idempotency-Key is still being answered'],
  too_many_loader_tokens: [409, 'A rotation would drop a loader token before its grace date'],
  too_many_forwarder_tokens: [409, 'A rotation would drop a forwarder’s token before its grace time'],
  site_protected: [409, 'The manifest protects the site from removal'],
  wrong_status: [409, 'The container’s status doesn’t allow this'],
  precondition_failed: [412, 'The container was changed after the version that If-Match names'],
  body_too_large: [413, 'The request body is too large'],
  uri_too_long: [414, 'A part of the address is too long'],
  unsupported_media_type: [415, 'The request body must be application/json'],
  expectation_failed: [417, 'The service doesn’t do what the request’s `expect` header asks for'],
  foreign_domain: [422, 'The custom domain is not under the registrable part of any of the site’s domains'],
  idempotency_key_reused: [422, 'The Idempotency-Key was used with another request'],
  image_not_allowed: [422, 'The image is from a repository that IMAGE_REPOSITORIES doesn’t name'],
  invalid_container_config: [422, 'The container configuration is not what Tag Manager shows'],
  invalid_service_account: [422, 'The body is not the key of a Google Cloud service account'],
  rate_limited: [429, 'Too many requests in a minute'],
  too_many_streams: [429, 'The caller has too many event streams open'],
  headers_too_large: [431, 'The request line and headers are too large'],
  internal: [500, 'Something went wrong inside the management API'],
  provisioning_failed: [502, 'The provisioner did not accept the container'],
  verification_unavailable: [502, 'The verification worker can’t be reached; the status is unchanged'],
  auth_unavailable: [503, 'The keys that verify tokens can’t be fetched'],
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
