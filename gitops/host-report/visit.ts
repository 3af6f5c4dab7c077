import http from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { text } from 'node:stream/consumers';
import type { HostReport } from '../../edge/verification/contract.ts';
import { ARRIVAL_PATH } from '../appliers/proxy/policy.ts';

/** A way in: the host's name in a URL, and the socket that it is visited by; none: where the name leads. */
export interface WayIn {
  readonly url: URL;
  readonly socket?: { readonly address: string; readonly port: number };
}

/** For documentation (RFC 5737): nobody's. A visitor may claim it, and must not be believed. */
const CLAIMED = '192.0.2.1';
const MOST_CHARS = 64;

export interface ArrivalOptions {
  /** This host's address as the world sees it, where it isn't that of the socket. */
  readonly hostAddress: string;
  readonly lookup: LookupFunction;
  readonly timeoutMs: number;
}

/**
 * Visits a site as anybody would, by IPv4, claiming another address, and reads with which address it arrived before
 * the tag server. Certificates aren't judged: that is another check.
 */
export async function arriveBy(
  { url, socket: at }: WayIn,
  { hostAddress, lookup, timeoutMs }: ArrivalOptions,
): Promise<HostReport['arrivals'][number]> {
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  const request = (url.protocol === 'https:' ? https : http).request({
    host: at?.address ?? url.hostname,
    port: at?.port ?? (url.port || undefined),
    servername: url.hostname,
    path: ARRIVAL_PATH,
    agent: false,
    family: 4,
    lookup,
    rejectUnauthorized: false,
    headers: {
      host: url.host,
      'x-forwarded-for': CLAIMED,
      'x-real-ip': CLAIMED,
      forwarded: `for=${CLAIMED}`,
      'user-agent': 'Tagyard-Verification',
    },
    signal: AbortSignal.timeout(timeoutMs),
  });
  request.once('response', resolve);
  request.once('error', reject);
  request.end();
  const name = url.hostname;
  try {
    const response = await promise;
    const mine = (response.socket.localAddress ?? '').replace(/^::ffff:/, '');
    const from = [...new Set([mine, hostAddress])];
    const told = (await text(response)).trim().slice(0, MOST_CHARS);
    if (response.statusCode !== 200)
      return { name, from, as: null, problem: `status ${response.statusCode}` };
    return { name, from, as: told, problem: null };
  } catch (error) {
    return {
      name,
      from: [hostAddress],
      as: null,
      problem: error instanceof Error ? error.message : String(error),
    };
  }
}
