import createClient from 'openapi-fetch';
import type { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import * as answers from './cloudflare-answers.ts';
import { type ApiCall, parsedAnswer } from './cloudflare-call.ts';
import type { ApiEndpoint } from './cloudflare-errors.ts';
import { everyCursorPage, everyPage } from './cloudflare-paging.ts';
import { pacedFetch } from './cloudflare-transport.ts';
import type { components, paths } from './generated/cloudflare-api.d.ts';
import { createPace } from './pace.ts';

type DnsRecordBody =
  | components['schemas']['dns-records_ARecord']
  | components['schemas']['dns-records_AAAARecord']
  | components['schemas']['dns-records_CNAMERecord'];

/** A call that the generated document doesn't have yet. */
interface ScriptCall {
  readonly parameters: { readonly path: { readonly account_id: string; readonly script_name: string } };
  readonly get: {
    readonly parameters: ScriptCall['parameters'];
    readonly responses: { readonly 200: { readonly content: { readonly 'application/json': unknown } } };
  };
}

interface ZoneCall {
  readonly parameters: { readonly path: { readonly zone_id: string } };
  readonly get: {
    readonly parameters: ZoneCall['parameters'];
    readonly responses: ScriptCall['get']['responses'];
  };
}

type NewerPaths = Readonly<
  Record<`/accounts/{account_id}/workers/scripts/{script_name}/${'settings' | 'script-settings'}`, ScriptCall>
> &
  Readonly<
    Record<`/zones/{zone_id}/${'dns_records/usage' | 'settings/google-tag-gateway/config'}`, ZoneCall>
  >;

/** One transaction, in the order deletes, puts, posts; at most `MAX_DNS_BATCH` operations in total. */
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

/** Cloudflare's limits: operations in a batch on a free zone, pairs in a bulk write. */
export const MAX_DNS_BATCH = 200;
export const MAX_KV_BULK = 10_000;

/** Records in a page (the limit is 5,000,000): one call lists 1,600 sites. */
export const DNS_PAGE = 5000;
/** Keys in a page, Cloudflare's limit. */
export const KV_PAGE = 1000;
const NAMESPACE_PAGE = 100;

export interface CloudflareOptions {
  /** Base URL with its version, `https://api.cloudflare.com/client/v4` in production. */
  readonly url: string;
  readonly token: string;
  readonly accountId: string;
  /** Calls per second on average; the account has 4, for all hosts and people. */
  readonly rate?: number;
  /** Calls in a burst: with the default rate, at most 1,150 in any 5 minutes; 1,200 are allowed. */
  readonly burst?: number;
  readonly timeoutMs?: number;
  /** The pause after a 429 without `retry-after`; default: a minute. */
  readonly pauseSeconds?: number;
  /** The clock of the rate limit. */
  readonly clock?: Clock;
  /** Milliseconds since 1970, for dates in answers. */
  readonly now?: () => number;
}

/**
 * The calls that Tagyard makes to Cloudflare, with one rate limit. Reads are complete or throw: a short, truncated or
 * malformed page is a `RetryableError` and never an absent item. No call is repeated here.
 */
export type CloudflareClient = ReturnType<typeof cloudflareClient>;

export function cloudflareClient(options: CloudflareOptions) {
  const { url, token, accountId, rate = 3.5, burst = 100, timeoutMs = 30_000, pauseSeconds, clock } = options;
  const { now = () => Date.now() } = options;
  const api = createClient<paths & NewerPaths>({
    baseUrl: url.replace(/\/$/, ''),
    headers: { authorization: `Bearer ${token}` },
    fetch: pacedFetch(createPace({ perSecond: rate, burst }, clock), {
      ...{ timeoutMs, pauseSeconds, now },
    }),
  });
  const answer = <Schema extends z.ZodType>(endpoint: ApiEndpoint, schema: Schema, call: ApiCall) =>
    parsedAnswer({ endpoint, schema, call, now });
  const zonePath = (zone_id: string) => ({ path: { zone_id } });
  const scriptPath = (script_name: string) => ({ path: { account_id: accountId, script_name } });
  const kvPath = (namespace_id: string) => ({ path: { account_id: accountId, namespace_id } });

  return {
    /** The address ranges of Cloudflare's servers. */
    async ranges(signal: AbortSignal): Promise<readonly string[]> {
      const { result } = await answer('ips', answers.ipsAnswer, api.GET('/ips', { signal }));
      return [...result.ipv4_cidrs, ...result.ipv6_cidrs];
    },

    async zone(zoneId: string, signal: AbortSignal) {
      const call = api.GET('/zones/{zone_id}', { params: zonePath(zoneId), signal });
      return (await answer('zones', answers.zoneAnswer, call)).result;
    },

    /** How many DNS records the zone may have; `null`: the limit is the account's. */
    async dnsRecordQuota(zoneId: string, signal: AbortSignal): Promise<number | null> {
      const call = api.GET('/zones/{zone_id}/dns_records/usage', { params: zonePath(zoneId), signal });
      return (await answer('dns', answers.dnsUsageAnswer, call)).result.record_quota ?? null;
    },

    /** Google's tag gateway, which Cloudflare puts before all hosts of the zone; `null`: it was never configured. */
    async tagGateway(zoneId: string, signal: AbortSignal) {
      const path = '/zones/{zone_id}/settings/google-tag-gateway/config';
      const call = api.GET(path, { params: zonePath(zoneId), signal });
      return (await answer('zones', answers.tagGatewayAnswer, call)).result ?? null;
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

    /** The custom domains of all workers of the account, in all its zones. Not paged. */
    async workersDomains(signal: AbortSignal) {
      const params = { path: { account_id: accountId } };
      const call = api.GET('/accounts/{account_id}/workers/domains', { params, signal });
      return (await answer('domains', answers.workersDomainsAnswer, call)).result;
    },

    /** The settings of all versions of a worker: logs, traces, Logpush and tail workers. */
    async scriptSettings(script_name: string, signal: AbortSignal) {
      const path = '/accounts/{account_id}/workers/scripts/{script_name}/script-settings';
      const call = api.GET(path, { params: scriptPath(script_name), signal });
      return (await answer('scripts', answers.scriptSettingsAnswer, call)).result;
    },

    /** The bindings of the worker's newest version, without the values of secrets. */
    async scriptBindings(script_name: string, signal: AbortSignal) {
      const path = '/accounts/{account_id}/workers/scripts/{script_name}/settings';
      const call = api.GET(path, { params: scriptPath(script_name), signal });
      return (await answer('scripts', answers.scriptBindingsAnswer, call)).result.bindings ?? [];
    },

    namespaces(signal: AbortSignal) {
      return everyPage((page) => {
        const params = { path: { account_id: accountId }, query: { page, per_page: NAMESPACE_PAGE } };
        const call = api.GET('/accounts/{account_id}/storage/kv/namespaces', { params, signal });
        return answer('kv', answers.namespacesPage, call);
      });
    },

    /** With a `prefix`, only the keys that begin with it. */
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

    /** The text of a key; `null`: there is none. */
    async kvText(namespaceId: string, key: string, signal: AbortSignal): Promise<string | null> {
      const path = '/accounts/{account_id}/storage/kv/namespaces/{namespace_id}/bulk/get';
      const call = api.POST(path, { params: kvPath(namespaceId), body: { keys: [key] }, signal });
      return (await answer('kv', answers.kvTextsAnswer, call)).result.values[key] ?? null;
    },

    /** Returns the keys that were not written. */
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

    /** Returns the keys that were not deleted; an absent key counts as deleted. */
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
