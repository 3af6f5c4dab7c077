import type { FastifyReply, FastifyRequest } from 'fastify';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import { type FieldError, fieldErrors, type ProblemError, type ProblemOptions } from './problem.ts';

type Problem = ProblemError<Readonly<Record<string, readonly [status: number, title: string]>>>;

/** What a service answers to errors that aren't problems of its own. */
export interface ProblemService<Code extends string> {
  readonly Problem: new (code: Code, options?: ProblemOptions) => Problem;
  /** The class of errors of an unreadable sites repository. The base can't import it. */
  readonly SitesRepoError: abstract new (
    ...args: never
  ) => Error & { readonly refusal: string | null };
  readonly codes: {
    /** A request that violates the route's schema. */
    readonly schema: Code;
    /**
     * The 4xx of the framework and of Node for a late request, a large body, a long address, a wrong media type, an
     * unknown expectation and large headers.
     */
    readonly byStatus: Readonly<Record<408 | 413 | 414 | 415 | 417 | 431, Code>>;
    /** Every other 4xx of the framework and of Node. */
    readonly clientError: Code;
    /** More bodies at once than one address may send. */
    readonly tooMany: Code;
    /** A request on an open connection while the service stops. */
    readonly stopping: Code;
    readonly sitesRepo: Code;
    /** The server of the sites repository refuses a commit. */
    readonly commitRefused: Code;
    readonly internal: Code;
  };
  /** Codes of 5xx that are not logged, because they are part of normal operation. */
  readonly unlogged?: readonly Code[];
  /** `www-authenticate` of each 401. */
  readonly challenge?: string;
  /** Further headers of each problem. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The headers of a problem document. */
export function problemHeaders(requestId: string, further: ProblemService<string>['headers'] = {}) {
  return {
    ...further,
    'content-type': 'application/problem+json; charset=utf-8',
    'cache-control': 'no-store',
    'x-request-id': requestId,
  };
}

/** The error handler of a service: answers every error as a problem document, and logs those with a 5xx status. */
export function problemAnswer<Code extends string>(service: ProblemService<Code>) {
  const unlogged: ReadonlySet<string> = new Set(service.unlogged);
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const known = problemOf(error, service);
    if (known.status >= 500 && !unlogged.has(known.code)) request.log.error({ err: error }, known.message);
    if (known.status === 401 && service.challenge !== undefined) {
      reply.header('www-authenticate', service.challenge);
    }
    const body = JSON.stringify(known.body(request.id));
    return reply.status(known.status).headers(problemHeaders(request.id, service.headers)).send(body);
  };
}

function problemOf<Code extends string>(
  error: unknown,
  { Problem, SitesRepoError, codes }: ProblemService<Code>,
): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof SitesRepoError) {
    return error.refusal === null
      ? new Problem(codes.sitesRepo, { cause: error })
      : new Problem(codes.commitRefused, { detail: error.refusal, cause: error });
  }
  if (hasZodFastifySchemaValidationErrors(error)) {
    return new Problem(codes.schema, { errors: error.validation.flatMap(schemaErrors), cause: error });
  }
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : 500;
  if (typeof status !== 'number' || status >= 500) return new Problem(codes.internal, { cause: error });
  const byStatus: Readonly<Record<number, Code>> = codes.byStatus;
  return new Problem(byStatus[status] ?? codes.clientError);
}

interface SchemaIssue {
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly instancePath: string;
  readonly message?: string;
}

/** The fields that an issue is about: each of its unrecognized keys, or the one at its path. */
function schemaErrors({ keyword, params, instancePath, message = '' }: SchemaIssue): FieldError[] {
  const path = instancePath === '/' ? [] : instancePath.split('/').slice(1);
  const keys: unknown = keyword === 'unrecognized_keys' ? params.keys : undefined;
  if (!Array.isArray(keys)) return fieldErrors([{ path, message }]);
  return fieldErrors(keys.map((key) => ({ path: [...path, String(key)], message })));
}
