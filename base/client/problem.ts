import type { components } from './generated/management-api.d.ts';

/** A problem answer of the management API (RFC 9457), as its OpenAPI document describes it. */
export type ApiProblemBody = components['schemas']['Problem'];
/** The closed set of error codes. */
export type ApiProblemCode = ApiProblemBody['code'];

/** The API, or a proxy in front of it, did not answer with a 2xx. */
export class ApiProblem extends Error {
  override name = 'ApiProblem';
  /** The HTTP status. */
  readonly status: number;
  /** `null`: the answer is not a problem of the API's own, for example the page of a proxy, or a 304. */
  readonly code: ApiProblemCode | null;
  /** The whole body where it is a problem. It has `detail`, `requestId` and, for wrong fields, `errors`. */
  readonly problem: ApiProblemBody | null;
  readonly requestId: string | null;
  /** The fields at fault, by their dotted path. */
  readonly errors: readonly { readonly path: string; readonly message: string }[];
  readonly response: Response;

  constructor(call: string, response: Response, problem: ApiProblemBody | null) {
    super(`${call}: ${response.status} ${textOf(response, problem)}`);
    this.status = response.status;
    this.code = problem?.code ?? null;
    this.problem = problem;
    this.requestId = problem?.requestId ?? response.headers.get('x-request-id');
    this.errors = problem?.errors ?? [];
    this.response = response;
  }
}

/** Reads the answer's body. Any body that isn't a problem of the API counts as none. */
export async function problemFrom(call: string, response: Response): Promise<ApiProblem> {
  const body: unknown = await response.json().catch(() => null);
  return new ApiProblem(call, response, isProblem(body) ? body : null);
}

function isProblem(body: unknown): body is ApiProblemBody {
  return (
    typeof body === 'object' &&
    body !== null &&
    'code' in body &&
    typeof body.code === 'string' &&
    'title' in body &&
    typeof body.title === 'string'
  );
}

function textOf(response: Response, problem: ApiProblemBody | null): string {
  if (problem === null) return response.statusText || 'is not an answer of the management API';
  const fields = (problem.errors ?? []).map(
    ({ path, message }) => `${path === '' ? '' : `${path}: `}${message}`,
  );
  return [`${problem.code}: ${problem.detail ?? problem.title}`, ...fields].join('; ');
}
