/** A service's closed set of error codes, each with its HTTP status and the title that explains it. */
type ErrorTable = Readonly<Record<string, readonly [status: number, title: string]>>;

/** The most fields at fault that a body lists. A request of 256 KiB can have a hundred thousand. */
const MAX_ERRORS = 20;

/** A field of a request that is at fault, by its dotted path: `domains.0`. */
export interface FieldError {
  readonly path: string;
  readonly message: string;
}

export interface ProblemOptions extends ErrorOptions {
  /** What is wrong in this case, where the code's title doesn't say it all. */
  readonly detail?: string | undefined;
  readonly errors?: readonly FieldError[] | undefined;
}

/**
 * An answer that is a problem (RFC 9457), thrown anywhere below a route. Each service has a subclass with its own table
 * of codes; `Members` are the further members of that service's problem bodies.
 */
export class ProblemError<Table extends ErrorTable, Members extends object = object> extends Error {
  override name = 'ProblemError';
  readonly code: keyof Table & string;
  readonly status: number;
  readonly #title: string;
  readonly #members: object;

  constructor(
    table: Table,
    code: keyof Table & string,
    { cause, ...members }: ProblemOptions & Members = {} as Members, // every member is optional
  ) {
    const [status, title] = table[code] ?? [500, code];
    super(members.detail ?? title, cause === undefined ? {} : { cause });
    this.code = code;
    this.status = status;
    this.#title = title;
    this.#members = members;
  }

  /** The body of the answer. Members that are `undefined` are left out by JSON. */
  body(requestId: string): object {
    const { detail, errors, ...members } = this.#members as ProblemOptions; // what the constructor was given
    const more = (errors?.length ?? 0) - MAX_ERRORS;
    return {
      type: `urn:tagyard:problem:${this.code}`,
      title: this.#title,
      status: this.status,
      code: this.code,
      detail,
      requestId,
      errors: errors?.slice(0, MAX_ERRORS),
      ...(more > 0 ? { moreErrors: more } : {}),
      ...members,
    };
  }
}

/** The issues of a zod error as a problem's body names them. */
export function fieldErrors(
  issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[],
): FieldError[] {
  return issues.map(({ path, message }) => ({ path: path.map(String).join('.'), message }));
}
