import type { IncomingMessage } from 'node:http';
import { equalSecrets } from '../../../../base/http/equal-secrets.ts';
import { endToEndHeaders } from '../../../../base/http/hop-by-hop.ts';
import type { ProxySettings } from '../backend.ts';
import type { Vhost } from '../desired.ts';
import { HOP_SECRET_HEADERS, isDropped, RELAYED, ROBOTS, STATED } from '../policy.ts';
import type { VisitorOf } from '../visitor-address.ts';

type HopSecrets = Pick<ProxySettings, 'hopSecret' | 'previousHopSecret'>;

/** The target of a request, read as nginx does: an absolute target takes precedence over the Host header. */
export interface ProxiedRequest {
  /** Lower case, without port. */
  readonly host: string;
  /** `:8088`, or empty. */
  readonly port: string;
  /** Path and query as received. */
  readonly target: string;
}

/** `null` if the request names no host. */
export function readRequest(request: IncomingMessage): ProxiedRequest | null {
  const absolute = /^https?:\/\/([^/?#]+)(.*)$/i.exec(request.url ?? '');
  const authority = absolute?.[1] ?? request.headers.host ?? '';
  const match = /^([a-z0-9.-]+)(:[0-9]{1,5})?$/i.exec(authority);
  if (match === null) return null;
  const [, host = '', port = ''] = match;
  const target = absolute === null ? (request.url ?? '/') : absolute[2] || '/';
  return { host: host.toLowerCase(), port, target };
}

/**
 * The headers to forward for a request to `vhost`: without the fields of the connection, and without a client's
 * claims about the visitor, unless the client knows the hop secret and the vhost is not a custom domain's.
 */
export function forwardedHeaders(
  request: IncomingMessage,
  vhost: Vhost,
  { host, port }: ProxiedRequest,
  { visitorOf, ...secrets }: HopSecrets & { readonly visitorOf: VisitorOf },
): Record<string, string | string[]> {
  const passed = new Set(endToEndHeaders(request.rawHeaders).filter((_, index) => index % 2 === 0));
  const names = new Set([...passed].map((name) => name.toLowerCase()));
  for (const name of names) if (name === 'expect' || isDropped(vhost.kind, name)) names.delete(name);
  const given = Object.entries(request.headers).flatMap(([name, value]) =>
    names.has(name) && value !== undefined ? [[name, value] as const] : [],
  );
  const [hopHeader] = HOP_SECRET_HEADERS;
  const { address, scheme } = visitorOf(peerAddress(request), request.headers);
  const known = {
    'x-forwarded-for': address,
    'x-forwarded-host': `${host}${port}`,
    'x-forwarded-proto': scheme ?? ('encrypted' in request.socket ? 'https' : 'http'),
  };
  if (vhost.kind === 'custom') {
    return { ...Object.fromEntries(given), ...known, host: vhost.edgeHost, [hopHeader]: secrets.hopSecret };
  }
  const trusted = isTrusted(request, secrets);
  const unproven = trusted ? [] : [...STATED, ...RELAYED];
  const rest = given.filter(([name]) => !unproven.some((field) => field === name));
  return { ...Object.fromEntries(rest), ...(trusted ? {} : known), host: `${host}${port}` };
}

function peerAddress({ socket }: IncomingMessage): string {
  return (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
}

/** Whether the edge sent the request. */
function isTrusted({ headers }: IncomingMessage, { hopSecret, previousHopSecret }: HopSecrets): boolean {
  const [hopHeader, oldHopHeader] = HOP_SECRET_HEADERS;
  const given = headers[hopHeader] ?? headers[oldHopHeader];
  if (typeof given !== 'string') return false;
  return [hopSecret, previousHopSecret].some((one) => one !== undefined && equalSecrets(given, one));
}

/** Whether a crawler asks a container's host for its rules; a request of the edge is for the container itself. */
export function asksForRules(
  request: IncomingMessage,
  { target }: ProxiedRequest,
  secrets: HopSecrets,
): boolean {
  return target.split('?')[0] === ROBOTS.path && !isTrusted(request, secrets);
}

/** The method for a container: a tag server answers its health only to GET, and monitors send HEAD. */
export function forwardedMethod({ method }: IncomingMessage, { target }: ProxiedRequest): string | undefined {
  return method === 'HEAD' && /\/health[yz]$/.test(target.split('?')[0] ?? '') ? 'GET' : method;
}
