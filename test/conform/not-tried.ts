/**
 * Thrown by a behaviour, or by the target that it uses, where nothing can be said about the real thing: the network is
 * away, or something that the behaviour needs was not given. The message says what to do.
 */
export class NotTried extends Error {
  override name = 'NotTried';
}

/** Codes of Node and undici that say something about this machine's network, never about what an address answers. */
const NETWORK = [
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENETUNREACH',
  'ENETDOWN',
  'EHOSTUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
];

/** The reason in an error or in one of its causes; `null`: the error says something about the target. */
export function reasonNotTried(error: unknown): string | null {
  for (const cause of causesOf(error)) {
    if (cause instanceof NotTried) return cause.message;
    if (NETWORK.includes(codeOf(cause) ?? '')) return `the network: ${cause.message}`;
  }
  return null;
}

/** Why an address gave no answer, with the system's code where there is one. */
export function unreachable(host: string, error: unknown): string {
  const causes = causesOf(error);
  const reason = causes.map(codeOf).find((code) => code !== null) ?? causes.at(-1)?.message ?? String(error);
  return `${host} can't be reached (${reason})`;
}

/** An error and its causes; `fetch` gives an `AggregateError` where a host has several addresses. */
function causesOf(error: unknown): Error[] {
  if (!(error instanceof Error)) return [];
  const inner = error instanceof AggregateError ? error.errors.flatMap(causesOf) : [];
  return [error, ...inner, ...causesOf(error.cause)];
}

function codeOf(error: Error): string | null {
  return 'code' in error && typeof error.code === 'string' ? error.code : null;
}
