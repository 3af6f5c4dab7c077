import { ProblemError, type ProblemOptions } from '../../base/http/problem.ts';

/** Every error code that the provisioner answers with, its HTTP status, and the title that explains it. */
export const PROVISIONER_ERRORS = {
  secret_not_configured: [403, 'The provisioner has no INFRA_SECRET, so it takes no request'],
  wrong_secret: [401, 'The x-secret header is missing or wrong'],
  read_only: [403, 'INFRA_READ_TOKEN is only for plans, the status and metrics'],
  wrong_signature: [401, 'The webhook’s signature or token is missing or wrong'],
  malformed_request: [400, 'The request is not valid for this endpoint'],
  request_timeout: [408, 'The request was not sent in time'],
  body_too_large: [413, 'The request body is too large'],
  uri_too_long: [414, 'A part of the address is too long'],
  expectation_failed: [417, 'The service doesn’t do what the request’s `expect` header asks for'],
  too_many_requests: [429, 'The address is sending too many requests at once; try again in a moment'],
  headers_too_large: [431, 'The request line and headers are too large'],
  invalid_manifest: [422, 'The manifest is refused'],
  foreign_domain: [422, 'The custom domain is not under the registrable part of any of the site’s domains'],
  wrong_host: [422, 'The manifest names another host than this one'],
  unknown_site: [404, 'There is no such site in the sites repository'],
  unknown_operation: [404, 'There is no such operation, or it is too old'],
  unknown_ref: [404, 'The sites repository has no such revision'],
  not_found: [404, 'There is nothing at this address'],
  method_not_allowed: [405, 'The address doesn’t accept this method; the header `allow` lists its methods'],
  name_taken: [409, 'Another site of this host has one of the manifest’s names, ports or tokens'],
  quota_reached: [409, 'The zone has no room for another site'],
  superseded: [409, 'The site was removed or replaced after the request’s revision'],
  site_protected: [409, 'The manifest protects the site from removal'],
  site_suspended: [409, 'The site is suspended, so the change would wait; resume it first'],
  removal_unconfirmed: [409, 'The revert would remove the site, which the request doesn’t allow'],
  site_stalled: [409, 'The site has no manifest that this host can use'],
  commit_refused: [409, 'The server of the sites repository refuses the commit; `detail` has its words'],
  checksum_mismatch: [409, 'The checksum is not that of the current plan'],
  still_running: [504, 'The operation is still running; poll its address'],
  stopping: [503, 'The provisioner is stopping; try again in a moment'],
  sites_repo_unavailable: [503, 'The sites repository can’t be read or written'],
  internal: [500, 'Something went wrong inside the provisioner'],
} as const satisfies Record<string, readonly [status: number, title: string]>;

export type ProvisionerErrorCode = keyof typeof PROVISIONER_ERRORS;

interface Members {
  /** The operation that is still running. */
  readonly operation?: { readonly id: string; readonly url: string };
}

/** A problem answer of the provisioner. */
export class ProvisionerProblem extends ProblemError<typeof PROVISIONER_ERRORS, Members> {
  constructor(code: ProvisionerErrorCode, options: ProblemOptions & Members = {}) {
    super(PROVISIONER_ERRORS, code, options);
  }
}
