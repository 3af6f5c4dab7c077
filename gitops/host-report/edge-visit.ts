import http from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { text } from 'node:stream/consumers';
import { withinTime } from '../../base/time-limit.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import { PROBE_MARK } from '../appliers/proxy/policy.ts';
import type { EdgeAnswer } from '../report/report.ts';
import { hostProbeMark, PROBE_RECOGNISED } from './probe-mark.ts';

const ANSWER_MS = 3_000;
/** The worker answers this path itself, with a problem document, also for names of no site. */
export const EDGE_PATH = '/.tagyard/health';

export interface EdgeVisit {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  /** The edge has said that the visit's mark is of its own HOP_SECRET. */
  readonly isRecognised: boolean;
}

interface Visitor {
  readonly lookup: LookupFunction;
  /** The secret by which the edge recognises the visit as a probe. */
  readonly hopSecret: string;
}

/** Requests a path of a site at its edge URL, marked as a probe. */
export async function visitEdge(
  edge: URL,
  path: string,
  { lookup, hopSecret, signal }: Visitor & { readonly signal: AbortSignal },
): Promise<EdgeVisit> {
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  const { get } = edge.protocol === 'https:' ? https : http;
  const headers = { [PROBE_MARK]: hostProbeMark(hopSecret, { edge: edge.hostname, path }, Date.now()) };
  get(new URL(path, edge), { agent: false, lookup, signal, headers }, resolve).once('error', reject);
  const response = await promise;
  const { statusCode: status = 0, headers: received } = response;
  return {
    status,
    type: received['content-type'] ?? '',
    body: await text(response),
    isRecognised: received[PROBE_MARK] === PROBE_RECOGNISED,
  };
}

/** Whether the worker, and not another server, has answered. */
export function isOfWorker({ body }: EdgeVisit): boolean {
  return body.includes('urn:tagyard:problem:');
}

/**
 * Whether the edge answers for the site: with its loader, or where its serving is off, by saying so. Never throws,
 * because a site that isn't served yet is no fault.
 */
export async function askEdge(
  { hostnames, loaderToken, serving }: Pick<Manifest, 'hostnames' | 'loaderToken' | 'serving'>,
  {
    edgePublicUrl,
    timeoutMs = ANSWER_MS,
    ...visitor
  }: Visitor & { readonly edgePublicUrl: string; readonly timeoutMs?: number },
): Promise<EdgeAnswer> {
  const url = new URL(edgePublicUrl.replace('{host}', hostnames.edge));
  const path = `/l/${loaderToken}.js`;
  try {
    const { status, type, body } = await withinTime(timeoutMs, (signal) =>
      visitEdge(url, path, { ...visitor, signal }),
    );
    const isServed =
      serving === false
        ? status === 403 && body.includes('urn:tagyard:problem:serving_off')
        : status === 200 && /\bjavascript\b/.test(type);
    return { served: isServed, detail: `${url.host} answers for the site’s loader with status ${status}` };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { served: false, detail: `${url.host} doesn’t answer for the site’s loader: ${why}` };
  }
}
