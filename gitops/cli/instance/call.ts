import { z } from 'zod';
import { CliError, ServiceProblem } from '../output/cli-error.ts';

interface Service {
  /** For messages: `the provisioner`. */
  readonly name: string;
  readonly url: string;
}

const problem = z.object({
  code: z.string().default(''),
  title: z.string().default(''),
  detail: z.string().optional(),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).default([]),
  moreErrors: z.number().default(0),
});

/** Fetches within a time limit. Throws `CliError` if the service can't be reached or doesn't answer. */
export async function callService(
  { name, url }: Service,
  request: Request,
  timeoutMs: number,
): Promise<Response> {
  try {
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
    const response = await fetch(request, { signal });
    // Read here: the limit covers the body too.
    const body = await response.arrayBuffer();
    return new Response(body.byteLength === 0 ? null : body, response);
  } catch (cause) {
    if (!(cause instanceof DOMException && cause.name === 'TimeoutError')) {
      throw new CliError(`${name} at ${url} can't be reached`, { cause });
    }
    const changes = request.method === 'GET' ? '' : ' The request may take effect nevertheless.';
    throw new CliError(
      `${name} at ${url} did not answer ${request.method} ${new URL(request.url).pathname} within ${timeoutMs / 1000} s: check its process and its log, or set TAGYARD_TIMEOUT.${changes}`,
      { cause },
    );
  }
}

/** Makes an error from an answer other than 2xx. Its message lists every field at fault. */
export function problemOf({ name }: Service, status: number, body: unknown): ServiceProblem {
  const { code, title, detail, errors, moreErrors } = problem.safeParse(body).data ?? problem.parse({});
  const message = detail || title || `${name} answered with status ${status}`;
  const fields = errors.map(({ path, message: what }) => `\n  ${path === '' ? '' : `${path}: `}${what}`);
  const more = moreErrors === 0 ? '' : `\n  and ${moreErrors} more`;
  return new ServiceProblem(`${message}${fields.join('')}${more}`, code);
}
