import { isBot } from './bots.ts';
import { EdgeError } from './errors.ts';
import { readForwarder } from './forwarder.ts';
import { NOWHERE } from './place.ts';
import {
  DROPPED,
  isMisspelt,
  type PassesCookie,
  type Prefixes,
  passedCookies,
  prefixOf,
  withoutPrefix,
} from './prefix.ts';
import type { Hop } from './public-url.ts';
import { FORWARDER_HEADERS } from './request-headers.ts';

/** A request as the site's plugins get it, and how it came. */
export interface Arrival {
  /**
   * The request as plugins get it. Under a prefix it is a copy, made only where it is needed, because copying costs as much
   * as answering a loader.
   */
  readonly served: () => Request;
  /** A header of that request. */
  readonly header: (name: string) => string | null;
  /** The request that has the body, or the rest of it. */
  readonly bodyHolder: () => Request;
  /** Normalised, and without the prefix. */
  readonly path: string;
  /** `/m3trics1`, or empty. */
  readonly prefix: string;
  /** Takes the slash at the end of the path off the request that plugins get; called before `served`. */
  readonly takeOffSlash: () => void;
  readonly hop: Hop;
}

interface ArrivalDependencies {
  readonly prefixes: Prefixes;
  readonly passesCookie: PassesCookie;
  /** The hop as it is known without regard to a prefix. */
  readonly peer: Hop;
  /** Whether our own proxy sent the request. */
  readonly isProxied: boolean;
  readonly now: () => number;
}

/**
 * Reads which hop is before the edge. Under a prefix it is the domain's own server, if that server has sent its secret.
 * Behind our own proxy only the proxy's statements count, because a client may have sent it the forwarder's headers.
 * Throws `not_found` for another spelling of a prefix, because the forwarder's statements would be ignored there.
 */
export async function arrive(
  request: Request,
  { pathname }: URL,
  { prefixes, passesCookie, peer, isProxied, now }: ArrivalDependencies,
): Promise<Arrival> {
  const { headers } = request;
  const prefix = prefixOf(pathname, prefixes);
  if (prefix === null) {
    if (isMisspelt(pathname, prefixes)) throw new EdgeError('not_found');
    const served = () => request;
    return {
      served,
      header: (name) => headers.get(name),
      bodyHolder: served,
      path: pathname,
      prefix: '',
      takeOffSlash: () => undefined,
      hop: peer,
    };
  }
  const stated = isProxied ? peer : await readForwarder(headers, prefixes.get(prefix) ?? [], now());
  let copy: Request | undefined;
  let isSlashless = false;
  return {
    served() {
      copy ??= withoutPrefix(request, prefix, passesCookie, isSlashless);
      return copy;
    },
    header(name) {
      if (DROPPED.includes(name)) return null;
      const value = headers.get(name);
      return name === 'cookie' ? passedCookies(value, passesCookie) : value;
    },
    bodyHolder: () => (copy?.body ? copy : request),
    path: pathname.slice(prefix.length) || '/',
    prefix,
    takeOffSlash() {
      isSlashless = true;
    },
    // Without a proof the peer may be the domain's server, not the visitor.
    hop: stated ?? { ...peer, place: NOWHERE, isTrusted: false },
  };
}

/** The request headers that decide an answer under a prefix, for caches between the domain's server and the edge. */
export const FORWARDER_VARY = [
  FORWARDER_HEADERS.host,
  FORWARDER_HEADERS.scheme,
  FORWARDER_HEADERS.token,
].join(', ');

/** 0 to 100: how surely a bot sent the request. Cloudflare's own score is 1 for a bot, and 99 for a person. */
export function botScoreOf(request: Request, arrival: Parameters<typeof isBotRequest>[1]): number {
  if (isBotRequest(request, arrival)) return 100;
  const isPeer = !arrival.prefix && !arrival.hop?.forwardedHost;
  const judged: unknown = isPeer ? request.cf?.botManagement : undefined;
  const score = judged instanceof Object && 'score' in judged ? judged.score : undefined;
  return typeof score === 'number' && score >= 1 && score <= 99 ? 100 - score : 0;
}

/** Whether a bot sent the request. Below a prefix or behind our proxy, Cloudflare knows only the server in between. */
export function isBotRequest(
  { headers, cf }: Request,
  { prefix, hop }: { readonly prefix: string; readonly hop?: Hop },
): boolean {
  return isBot(headers.get('user-agent'), prefix || hop?.forwardedHost ? undefined : cf?.botManagement);
}
