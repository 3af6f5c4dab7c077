import type { IncomingMessage } from 'node:http';
import type { ContainerDraft } from './container.ts';
import { cookieValue } from './cookies.ts';
import { loadCrypto } from './node/modules.ts';
import type { ContainerConfig } from './settings.ts';

/** What a debug session's three cookies hold for one container. `session` is the value of `gtm_debug`. */
interface DebugSession {
  readonly auth: string;
  readonly preview: string;
  readonly session: string;
}

const ATTRIBUTES = 'Path=/; HttpOnly; SameSite=None; Secure';

/** A debug cookie has one value per container: `GTM-A=env-3:GTM-B=env-1`. */
const pairsOf = (request: IncomingMessage, cookie: string): string[] =>
  (cookieValue(request, cookie) ?? '').split(':').filter((pair) => pair !== '');

/** The container's value in a debug cookie. */
export function debugCookie(request: IncomingMessage, cookie: string, id: string): string | undefined {
  return valueIn(pairsOf(request, cookie), id);
}

function valueIn(pairs: readonly string[], id: string): string | undefined {
  return pairs.find((pair) => pair.startsWith(`${id}=`))?.slice(id.length + 1);
}

/** The previews that the cookie names, as pairs of a container and its draft. */
export function previewsIn(request: IncomingMessage): string[][] {
  return pairsOf(request, 'gtm_preview')
    .map((pair) => pair.split('='))
    .filter(({ length }) => length === 2);
}

export const newSession = (): string => loadCrypto().randomBytes(8).toString('hex');

/** `Set-Cookie` lines that renew the three cookies. `values` replace the container's old ones; `null` removes these. */
export function debugCookies(request: IncomingMessage, id: string, values: DebugSession | null): string[] {
  const line = (cookie: string, value: string | undefined) => {
    const others = pairsOf(request, cookie).filter((pair) => !pair.startsWith(`${id}=`));
    const all = [...others, ...(value === undefined ? [] : [`${id}=${value}`])].join(':');
    const set =
      all === ''
        ? `${cookie}=x; expires=Thu, 01 Jan 1970 00:00:00 GMT; ${ATTRIBUTES}`
        : `${cookie}=${all}; Max-Age=300; ${ATTRIBUTES}`;
    return set.replaceAll(/[\r\n]/g, '');
  };
  return [
    line('gtm_auth', values?.auth),
    line('gtm_debug', values?.session),
    line('gtm_preview', values?.preview),
  ];
}

/**
 * The draft of this container that a request asks for: by `x-gtm-server-preview`, else by the three headers `x-gtm-*`, else
 * by the cookies. `null`: none, so the published version serves it. `unauthorised`: a draft without its auth.
 */
export function draftOf(
  request: IncomingMessage,
  { id }: ContainerConfig,
): ContainerDraft | 'unauthorised' | 'malformed' | null {
  const { headers } = request;
  const stated = headers['x-gtm-server-preview'];
  if (stated !== undefined && stated !== '') {
    const bytes = Buffer.from(String(stated), 'base64');
    const parts = bytes.toString('base64') === stated ? bytes.toString().split('|') : [];
    const [preview = '', auth = '', session = ''] = parts;
    return parts.length === 3 ? toDraft(preview, auth, session) : 'malformed';
  }
  const inHeader = (name: string) => valueIn(String(headers[name] ?? '').split(':'), id);
  const fromHeaders = ['x-gtm-preview', 'x-gtm-auth', 'x-gtm-debug'].map(inHeader);
  const values = fromHeaders.some((value) => value !== undefined)
    ? fromHeaders
    : ['gtm_preview', 'gtm_auth', 'gtm_debug'].map((cookie) => debugCookie(request, cookie, id));
  return toDraft(...(values as [preview?: string, auth?: string, session?: string])); // three, by `map`
}

function toDraft(preview = '', auth = '', session = ''): ContainerDraft | 'unauthorised' | null {
  if (preview === '' && session === '') return null;
  return auth === '' ? 'unauthorised' : { preview: preview || null, auth };
}
