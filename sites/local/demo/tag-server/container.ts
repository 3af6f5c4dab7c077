import { lookupDnsFirst } from './lookup.ts';
import { http, loadHttps } from './node/modules.ts';
import type { TagServerSettings } from './settings.ts';

/** A draft of the container, as a debug session names it. */
export interface ContainerDraft {
  /** `env-3`, or a workspace's preview; `null`: a session without one. */
  readonly preview: string | null;
  readonly auth: string;
}

const GOOGLE = 'https://www.googletagmanager.com';
/** The only `auth` that the stand-in refuses if it answers in place of Google (no `upstream`). */
const REFUSED_AUTH = 'bad';
/** If the fetch has one of these statuses, so has the answer to a request for a draft; others become 400 or 500. */
const PASSED_ON: ReadonlySet<number> = new Set([400, 403, 404, 408, 500, 503]);

/** Google refused the container or could not be reached. The message holds `auth`, like the real server's. */
export class ContainerUnavailable extends Error {
  override name = 'ContainerUnavailable';
  /** The status with which a request for this draft is answered. */
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = PASSED_ON.has(status) ? status : status >= 400 && status < 500 ? 400 : 500;
  }
}

type Source = Pick<TagServerSettings, 'config' | 'upstream'>;

/**
 * Fetches `server.js` of the published container, or of a draft. There is no time limit, as in the real server: if an
 * upstream accepts the connection and never answers, the server never starts.
 */
export async function fetchContainer(
  { config, upstream }: Source,
  draft: ContainerDraft | null = null,
): Promise<void> {
  const auth = draft === null ? config.auth : draft.auth;
  const preview = draft === null ? `env-${config.env}` : draft.preview;
  const query = [
    `id=${config.id}`,
    ...(preview === null ? [] : [`gtm_preview=${preview}`]),
    `gtm_auth=${auth}`,
  ];
  const path = `/server.js?${query.join('&')}`;
  const url = `${upstream ?? GOOGLE}${path}`;
  const status = upstream === null ? (auth === REFUSED_AUTH ? 403 : 200) : await statusOf(url);
  if (status < 200 || status > 299) {
    throw new ContainerUnavailable(`Request to ${url} failed with status ${status}`, status);
  }
}

/** The status of a non-empty answer; an empty one counts as 500. */
function statusOf(url: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const { request } = url.startsWith('https:') ? loadHttps() : http;
  request(url, { lookup: lookupDnsFirst() }, (response) => {
    let octets = 0;
    response.on('data', (chunk: Buffer) => {
      octets += chunk.length;
    });
    response.on('end', () => resolve(octets === 0 ? 500 : (response.statusCode ?? 500)));
    response.on('error', reject);
  })
    .on('error', reject)
    .end();
  return promise.catch((error: Error) => {
    throw new ContainerUnavailable(`Request to ${url} failed: ${error.message}`, 500);
  });
}
