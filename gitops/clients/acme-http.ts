import { Agent } from 'node:https';
import { rootCertificates } from 'node:tls';
import { AcmeError, readProblem, readRetryAfter } from './acme-errors.ts';

const TIMEOUT_MS = 30_000;

/** Of an authority whose own certificate is by a CA that Node doesn't know; by the origin of its addresses. */
const agents = new Map<string, Agent>();
let loading: Promise<Library> | undefined;

type Library = typeof import('acme-client');

/**
 * The ACME library, loaded by the first host that orders certificates (it weighs 17 MB). It has one HTTP client for all
 * and makes plain text of an authority's errors; its own retries sleep as long as the authority says, out of anybody's
 * reach, and lose why nobody answered. So that client is set up anew here: no retries but those of a nonce, which are
 * elsewhere, and typed errors.
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
      // The library signs anew with the nonce that came with the refusal.
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
