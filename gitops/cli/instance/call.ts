import { CliError } from '../output/cli-error.ts';

export interface Service {
  /** Its name in messages: `the provisioner`. */
  readonly name: string;
  readonly url: string;
}

interface Call {
  readonly method: string;
  /** For messages. */
  readonly path: string;
  readonly timeoutMs: number;
}

/**
 * Calls a service within a time limit, which covers the whole answer. Throws `CliError` if the service can't be reached
 * or doesn't answer.
 */
export async function callService<Answer>(
  { name, url }: Service,
  { method, path, timeoutMs }: Call,
  send: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    return await send(signal);
  } catch (cause) {
    if (!signal.aborted) throw new CliError(`${name} at ${url} can't be reached`, { cause });
    const changes = method === 'GET' ? '' : ' The request may take effect nevertheless.';
    throw new CliError(
      `${name} at ${url} did not answer ${method} ${path} within ${timeoutMs / 1000} s: check its process and its log, or set TAGYARD_TIMEOUT.${changes}`,
      { cause },
    );
  }
}
