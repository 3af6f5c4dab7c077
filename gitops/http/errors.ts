/** Every error code that the provisioner answers, with its HTTP status and its line of meaning. */
export const ERRORS = {
  secret_not_configured: [403, 'The provisioner has no INFRA_SECRET, so it takes no request'],
  wrong_secret: [401, 'The x-secret header is missing or wrong'],
  malformed_request: [400, 'The request is not what this endpoint takes'],
  body_too_large: [413, 'The request body is too large'],
  invalid_manifest: [422, 'The manifest is refused'],
  foreign_domain: [422, 'The custom domain is not under the registrable part of any of the site’s domains'],
  wrong_host: [422, 'The manifest names another host than this one'],
  unknown_site: [404, 'There is no such site in the sites repository'],
  unknown_operation: [404, 'There is no such operation, or it is too old'],
  unknown_ref: [404, 'The sites repository has no such revision'],
  not_found: [404, 'There is nothing at this address'],
  name_taken: [409, 'Another site of this host has one of the manifest’s names, ports or tokens'],
  site_protected: [409, 'The manifest protects the site from removal'],
  site_stalled: [409, 'The site has no manifest that this host can use'],
  checksum_mismatch: [409, 'The checksum is not that of the plan as it is now'],
  still_running: [504, 'The operation goes on; look at its address again'],
  sites_repo_unavailable: [503, 'The sites repository can’t be read or written'],
  internal: [500, 'Something went wrong inside the provisioner'],
} as const satisfies Record<string, readonly [status: number, title: string]>;

export type ErrorCode = keyof typeof ERRORS;

/** An answer that is a problem (RFC 9457); thrown anywhere below a route. */
export class ProblemError extends Error {
  override name = 'ProblemError';
  readonly code: ErrorCode;
  readonly extra: {
    errors?: readonly { path: string; message: string }[];
    operation?: { id: string; url: string };
  };

  constructor(code: ErrorCode, detail?: string, extra: ProblemError['extra'] = {}, options?: ErrorOptions) {
    super(detail ?? ERRORS[code][1], options);
    this.code = code;
    this.extra = extra;
  }
}

/** The body of a problem answer. */
export function problem(error: ProblemError, requestId: string): { status: number; body: object } {
  const [status, title] = ERRORS[error.code];
  const detail = error.message === title ? {} : { detail: error.message };
  return {
    status,
    body: {
      type: `urn:tagyard:problem:${error.code}`,
      title,
      status,
      code: error.code,
      ...detail,
      requestId,
      ...error.extra,
    },
  };
}

/** The issues of a zod error as an answer names them. */
export function fieldErrors(
  issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[],
): { path: string; message: string }[] {
  return issues.map(({ path, message }) => ({ path: path.map(String).join('.'), message }));
}
