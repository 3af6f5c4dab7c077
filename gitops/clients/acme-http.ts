import { Agent } from 'node:https';
import { rootCertificates } from 'node:tls';
import { AcmeError, readProblem, readRetryAfter } from './acme-errors.ts';

const TIMEOUT_MS = 30_000;

/** Agents for authorities whose own certificate is from a CA that Node doesn't trust, by origin. */
const agents = new Map<string, Agent>();
let loading: Promise<Library> | undefined;

type Library = typeof import('acme-client');

/**
 * The ACME library, loaded when the first certificate is ordered, since it takes 17 MB of memory. It has one global
 * HTTP client, which turns an authority's errors into text. Its retries sleep as long as the authority says, can't be
 * aborted, and lose the cause of a failure. So that client is configured here: typed errors, and no retries except for
 * a bad nonce, which the library handles elsewhere.
 */
export async function acmeLibrary({ directoryUrl, ca }: { directoryUrl: string; ca?: string }) {
  if (ca !== undefined) {
    agents.set(new URL(directoryUrl).origin, new Agent({ ca: [...rootCertificates, ca] }));
  }
  loading ??= import('acme-client').then(setUp);
  return await loading;
}

function setUp(library: Library): Library {
  const { axios } = library;
  axios.defaults.timeout = TIMEOUT_MS;
  axios.interceptors.request.clear();
  axios.interceptors.response.clear();
  axios.interceptors.request.use((request) => {
    const agent = agents.get(new URL(request.url ?? '').origin);
    return agent === undefined ? request : { ...request, httpsAgent: agent };
  });
  axios.interceptors.response.use(
    (response) => {
      const { status, data, headers } = response;
      const problem = readProblem(data);
      // The library repeats the request with the nonce of this response.
      if (status < 400 || problem?.type === 'badNonce') return response;
      const retryAt = readRetryAfter(headers['retry-after'], Date.now());
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
