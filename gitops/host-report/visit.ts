import http from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { text } from 'node:stream/consumers';
import type { HostReport } from '../../edge/verification/contract.ts';
import { ARRIVAL_PATH, PROBE_MARK } from '../appliers/proxy/policy.ts';
import { hostProbeMark } from './probe-mark.ts';

/** A URL to visit, and the socket to connect to; without one, the address of the URL's host. */
export interface VisitTarget {
  readonly url: URL;
  readonly socket?: { readonly address: string; readonly port: number };
}

/** An address for documentation (RFC 5737). A visitor may claim any address in a header; it must not be trusted. */
const CLAIMED_ADDRESS = '192.0.2.1';
const MAX_CHARS = 64;

interface ArrivalOptions {
  /** This host's public addresses, which may differ from the socket's. */
  readonly hostAddresses: readonly string[];
  /** The site's edge hostname, and the secret by which the edge recognizes this visit as a probe. */
  readonly edge: string;
  readonly hopSecret: string;
  readonly lookup: LookupFunction;
  readonly timeoutMs: number;
}

/**
 * Visits a site by IPv4 with a header that claims another address, and reads from which address the request reached the
 * tag server's host. Certificates are not verified: another check does that.
 */
export async function measureArrival(
  { url, socket: endpoint }: VisitTarget,
  { hostAddresses, edge, hopSecret, lookup, timeoutMs }: ArrivalOptions,
): Promise<HostReport['arrivals'][number]> {
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  const request = (url.protocol === 'https:' ? https : http).request({
    host: endpoint?.address ?? url.hostname,
    port: endpoint?.port ?? (url.port || undefined),
    servername: url.hostname,
    path: ARRIVAL_PATH,
    agent: false,
    family: 4,
    lookup,
    rejectUnauthorized: false,
    headers: {
      host: url.host,
      'x-forwarded-for': CLAIMED_ADDRESS,
      'x-real-ip': CLAIMED_ADDRESS,
      forwarded: `for=${CLAIMED_ADDRESS}`,
      'user-agent': 'Tagyard-Verification',
      [PROBE_MARK]: hostProbeMark(hopSecret, { edge, path: ARRIVAL_PATH }, Date.now()),
    },
    signal: AbortSignal.timeout(timeoutMs),
  });
  request.once('response', resolve);
  request.once('error', reject);
  request.end();
  const name = url.hostname;
  try {
    const response = await promise;
    const own = (response.socket.localAddress ?? '').replace(/^::ffff:/, '');
    const from = [...new Set([own, ...hostAddresses])];
    const arrivedAs = (await text(response)).trim().slice(0, MAX_CHARS);
    if (response.statusCode !== 200)
      return { name, from, as: null, problem: `status ${response.statusCode}` };
    return { name, from, as: arrivedAs, problem: null };
  } catch (error) {
    return {
      name,
      from: [...hostAddresses],
      as: null,
      problem: error instanceof Error ? error.message : String(error),
    };
  }
}
