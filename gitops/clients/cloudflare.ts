import createClient from 'openapi-fetch';
import type { z } from 'zod';
import type { Clock } from '../base/clock.ts';
import * as answers from './cloudflare-answers.ts';
import { type ApiCall, parsedAnswer } from './cloudflare-call.ts';
import type { ApiEndpoint } from './cloudflare-errors.ts';
import { everyCursorPage, everyPage } from './cloudflare-paging.ts';
import { pacedFetch } from './cloudflare-transport.ts';
import type { components, paths } from './generated/cloudflare-api.d.ts';
import { createPace } from './pace.ts';

export type { DnsRecord, KvKey, KvNamespaceInfo, WorkersRoute } from './cloudflare-answers.ts';

type DnsRecordBody =
  | components['schemas']['dns-records_ARecord']
  | components['schemas']['dns-records_AAAARecord']
  | components['schemas']['dns-records_CNAMERecord'];

/** One transaction; Cloudflare carries out deletes, then puts, then posts. At most `MAX_DNS_BATCH` in all. */
interface DnsBatch {
  readonly deletes: readonly { id: string }[];
  readonly puts: readonly (DnsRecordBody & { id: string })[];
  readonly posts: readonly DnsRecordBody[];
}

interface KvPair {
  readonly key: string;
  readonly value: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Operations in a batch on a free zone, and pairs in a bulk write (Cloudflare's limits). */
export const MAX_DNS_BATCH = 200;
export const MAX_KV_BULK = 10_000;

/** Records a page, of the 5,000,000 that may be asked for: one call for 1,600 sites. */
export const DNS_PAGE = 5000;
/** Keys a page, the most that Cloudflare lists at once. */
export const KV_PAGE = 1000;
const NAMESPACE_PAGE = 100;

export interface CloudflareOptions {
  /** Base URL with its version, `https://api.cloudflare.com/client/v4` in production. */
  readonly url: string;
  readonly token: string;
  readonly accountId: string;
  /** Calls a second in the long run; the account has 4, shared with people and other hosts. */
  readonly rate?: number;
  /** Calls at once after a quiet time: with the default rate, 1,150 in any 5 minutes of the 1,200 allowed. */
  readonly burst?: number;
  readonly timeoutMs?: number;
  /** How long nothing is asked after a 429 that doesn't say; default: a minute. */
  readonly pauseSeconds?: number;
  /** What calls are paced by. */
  readonly clock?: Clock;
  /** Milliseconds since 1970, which dates in answers are compared with. */
  readonly now?: () => number;
}

/**
 * The calls that Tagyard makes to Cloudflare, over one token bucket. Reads are complete or fail: a page that is short,
 * cut off or of another shape is a `RetryableError`, never "not there". No call is repeated here.
 */
export type CloudflareClient = ReturnType<typeof cloudflareClient>;

export function cloudflareClient(options: CloudflareOptions) {
  const { url, token, accountId, rate = 3.5, burst = 100, timeoutMs = 30_000, pauseSeconds, clock } = options;
  const { now = () => Date.now() } = options;
  const api = createClient<paths>({
    baseUrl: url.replace(/\/$/, ''),
    headers: { authorization: `Bearer ${token}` },
    fetch: pacedFetch(createPace({ perSecond: rate, burst }, clock), { timeoutMs, pauseSeconds, now }),
  });
  const answer = <Schema extends z.ZodType>(endpoint: ApiEndpoint, schema: Schema, call: ApiCall) =>
    parsedAnswer({ endpoint, schema, call, now });
  const zonePath = (zone_id: string) => ({ path: { zone_id } });
  const kvPath = (namespace_id: string) => ({ path: { account_id: accountId, namespace_id } });

  return {
    /** The ranges that Cloudflare's own servers call from. */
    async ranges(signal: AbortSignal): Promise<readonly string[]> {
      const { result } = await answer('ips', answers.ipsAnswer, api.GET('/ips', { signal }));
      return [...result.ipv4_cidrs, ...result.ipv6_cidrs];
    },

    async zone(zoneId: string, signal: AbortSignal) {
      const call = api.GET('/zones/{zone_id}', { params: zonePath(zoneId), signal });
      return (await answer('zones', answers.zoneAnswer, call)).result;
    },

    dnsRecords(zoneId: string, filter: { name?: string }, signal: AbortSignal) {
      return everyPage((page) => {
        const query = { page, per_page: DNS_PAGE, ...filter };
        const params = { ...zonePath(zoneId), query };
        return answer('dns', answers.dnsPage, api.GET('/zones/{zone_id}/dns_records', { params, signal }));
      });
    },

    async batchDnsRecords(zoneId: string, batch: DnsBatch, signal: AbortSignal) {
      const body = { deletes: [...batch.deletes], puts: [...batch.puts], posts: [...batch.posts] };
      const call = api.POST('/zones/{zone_id}/dns_records/batch', { params: zonePath(zoneId), body, signal });
      await answer('dns', answers.dnsBatchAnswer, call);
    },

    async routes(zoneId: string, signal: AbortSignal) {
      const call = api.GET('/zones/{zone_id}/workers/routes', { params: zonePath(zoneId), signal });
      return (await answer('routes', answers.routesAnswer, call)).result;
    },

    async createRoute(zoneId: string, route: { pattern: string; script: string }, signal: AbortSignal) {
      const call = api.POST('/zones/{zone_id}/workers/routes', {
        params: zonePath(zoneId),
        body: route,
        signal,
      });
      return (await answer('routes', answers.routeAnswer, call)).result.id;
    },

    async updateRoute(
      zoneId: string,
      id: string,
      route: { pattern: string; script: string },
      signal: AbortSignal,
    ) {
      const params = { path: { zone_id: zoneId, route_id: id } };
      const call = api.PUT('/zones/{zone_id}/workers/routes/{route_id}', { params, body: route, signal });
      await answer('routes', answers.routeAnswer, call);
    },

    async deleteRoute(zoneId: string, id: string, signal: AbortSignal) {
      const params = { path: { zone_id: zoneId, route_id: id } };
      const call = api.DELETE('/zones/{zone_id}/workers/routes/{route_id}', { params, body: {}, signal });
      await answer('routes', answers.routeDeleted, call);
    },

    namespaces(signal: AbortSignal) {
      return everyPage((page) => {
        const params = { path: { account_id: accountId }, query: { page, per_page: NAMESPACE_PAGE } };
        const call = api.GET('/accounts/{account_id}/storage/kv/namespaces', { params, signal });
        return answer('kv', answers.namespacesPage, call);
      });
    },

    /** With a `prefix` only the keys that begin with it. */
    kvKeys(namespaceId: string, signal: AbortSignal, prefix?: string) {
      return everyCursorPage((cursor) => {
        const query = {
          ...(cursor === undefined ? {} : { cursor }),
          ...(prefix === undefined ? {} : { prefix }),
        };
        const params = { ...kvPath(namespaceId), query };
        const path = '/accounts/{account_id}/storage/kv/namespaces/{namespace_id}/keys';
        return answer('kv', answers.kvKeysPage, api.GET(path, { params, signal }));
      });
    },

    /** Answers the keys that were not written; the others were. */
    async writeKv(
      namespaceId: string,
      pairs: readonly KvPair[],
      signal: AbortSignal,
    ): Promise<readonly string[]> {
      const body = pairs.map((pair) => ({ ...pair, metadata: { ...pair.metadata }, base64: false }));
      const path = '/accounts/{account_id}/storage/kv/namespaces/{namespace_id}/bulk';
      const call = api.PUT(path, { params: kvPath(namespaceId), body, signal });
      return (await answer('kv', answers.kvBulkAnswer, call)).result?.unsuccessful_keys ?? [];
    },

    /** Answers the keys that were not deleted; a key that isn't there counts as deleted. */
    async deleteKv(
      namespaceId: string,
      keys: readonly string[],
      signal: AbortSignal,
    ): Promise<readonly string[]> {
      const path = '/accounts/{account_id}/storage/kv/namespaces/{namespace_id}/bulk/delete';
      const call = api.POST(path, { params: kvPath(namespaceId), body: [...keys], signal });
      return (await answer('kv', answers.kvBulkAnswer, call)).result?.unsuccessful_keys ?? [];
    },
  };
}
