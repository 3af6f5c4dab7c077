import type { PluginErrorCode } from '../../plugins/contract.ts';

interface ErrorMeaning {
  readonly status: number;
  /** One line for the person whose request fails. It must not reveal internals. */
  readonly title: string;
}

/** Every error that the edge can answer with. The README lists them, and a test compares the lists. */
export const EDGE_ERRORS = {
  malformed_request: { status: 400, title: 'The request is not valid for this path' },
  serving_off: { status: 403, title: 'This site is switched off' },
  origin_not_allowed: { status: 403, title: 'Pages of this origin are not allowed here' },
  not_found: { status: 404, title: 'This path does not exist here' },
  unknown_host: { status: 404, title: 'No site and no server answers on this host' },
  unknown_loader: { status: 404, title: 'No loader of this site has this token' },
  unknown_site: { status: 404, title: 'The page is not on an active domain of this site' },
  unknown_container: { status: 404, title: 'No container of this site has this token' },
  method_not_allowed: { status: 405, title: 'This path does not allow this method' },
  body_too_large: { status: 413, title: 'The body is larger than this path allows' },
  internal: { status: 500, title: 'Something went wrong here' },
  upstream_failed: { status: 502, title: 'The upstream server gave no valid answer' },
  store_unavailable: { status: 503, title: 'The stores of the site cannot be read now' },
} as const satisfies Record<string, ErrorMeaning> & Record<PluginErrorCode, ErrorMeaning>;

type EdgeErrorCode = keyof typeof EDGE_ERRORS;

interface EdgeErrorOptions extends ErrorOptions {
  readonly detail?: string | undefined;
  readonly errors?: readonly { path: string; message: string }[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error that is answered with its own code. Any other error is answered as `internal`. */
export class EdgeError extends Error {
  override name = 'EdgeError';
  declare readonly code: EdgeErrorCode;
  declare readonly options: EdgeErrorOptions;
  constructor(code: EdgeErrorCode, options: EdgeErrorOptions = {}) {
    super(options.detail ?? EDGE_ERRORS[code].title, options);
    this.code = code;
    this.options = options;
  }
}

export function toEdgeError(error: unknown): EdgeError {
  return error instanceof EdgeError ? error : new EdgeError('internal', { cause: error });
}

/** problem+json (RFC 9457), never cached. */
export function toResponse({ code, options }: EdgeError, requestId: string): Response {
  const { status, title } = EDGE_ERRORS[code];
  const { detail, errors, headers } = options;
  return Response.json(
    { type: `urn:tagyard:problem:${code}`, title, status, code, detail, requestId, errors },
    {
      status,
      headers: { 'content-type': 'application/problem+json', 'cache-control': 'no-store', ...headers },
    },
  );
}
