import { Agent } from 'node:https';
import { rootCertificates } from 'node:tls';
import { AcmeError, readProblem, readRetryAfter } from './acme-errors.ts';

const TIMEOUT_MS = 30_000;

interface Authority {
  /** Set for an authority whose own certificate is from a CA that Node doesn't trust. */
  readonly agent: Agent | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}
/** The authorities by origin, since all of them use the library's one HTTP client. */
const authorities = new Map<string, Authority>();
let loading: Promise<Library> | undefined;

type Library = typeof import('acme-client');

interface AcmeLibraryOptions {
  readonly directoryUrl: string;
  /** PEM of a CA for the authority's own HTTPS. */
  readonly ca?: string;
  readonly now?: () => number;
}

/**
 * The ACME library, loaded when the first certificate is ordered, since it takes 17 MB of memory. It has one global
 * HTTP client, which reports an authority's errors as text only. Its retries sleep as long as the authority says, can't
 * be aborted, and lose the cause of a failure. Here, that client is configured to throw typed errors and never to
 * retry; the library itself repeats a request after a bad nonce.
 */
export async function acmeLibrary({ directoryUrl, ca, now = () => Date.now() }: AcmeLibraryOptions) {
  const { origin } = new URL(directoryUrl);
  const agent =
    ca === undefined
      ? undefined
      : (authorities.get(origin)?.agent ?? new Agent({ ca: [...rootCertificates, ca] }));
  authorities.set(origin, { agent, now });
  loading ??= import('acme-client').then(setUp);
  return await loading;
}

function authorityOf(url: string | undefined): Authority | undefined {
  return authorities.get(new URL(url ?? '').origin);
}

function setUp(library: Library): Library {
  const { axios } = library;
  axios.defaults.timeout = TIMEOUT_MS;
  axios.interceptors.request.clear();
  axios.interceptors.response.clear();
  axios.interceptors.request.use((request) => {
    const agent = authorityOf(request.url)?.agent;
    return agent === undefined ? request : { ...request, httpsAgent: agent };
  });
  axios.interceptors.response.use(
    (response) => {
      const { status, data, headers } = response;
      const problem = readProblem(data);
      // After a bad nonce, the library repeats the request with the nonce of this response.
      if (status < 400 || problem?.type === 'badNonce') return response;
      const retryAt = readRetryAfter(
        headers['retry-after'],
        authorityOf(response.config.url)?.now() ?? Date.now(),
      );
      throw new AcmeError(
        problem?.type ?? 'unreachable',
        problem?.detail ?? `the authority answered HTTP ${status}`,
        { retryAt },
      );
    },
    (cause: unknown) => {
      const why = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : '';
      throw new AcmeError('unreachable', `the authority can’t be reached${why}`, { cause });
    },
  );
  return library;
}
