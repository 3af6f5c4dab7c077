import { join } from 'node:path';
import Docker from 'dockerode';
import { containersApplier } from './appliers/containers/applier.ts';
import { dockerRuntime } from './appliers/containers/docker-runtime.ts';
import { Recycling } from './appliers/containers/recycling.ts';
import type { Runtime } from './appliers/containers/runtime.ts';
import type { Applier } from './appliers/contract.ts';
import { type DnsProvider, dnsApplier } from './appliers/dns/applier.ts';
import { cloudflareDns } from './appliers/dns/cloudflare.ts';
import { rfc2136Dns } from './appliers/dns/rfc2136.ts';
import { kvApplier } from './appliers/edge/kv.ts';
import { routeApplier } from './appliers/edge/route.ts';
import { edgeStore } from './appliers/edge/store.ts';
import { wildcardRouteApplier } from './appliers/edge/wildcard-route.ts';
import { proxyApplier } from './appliers/proxy/applier.ts';
import type { EdgeUpstream, ProxyBackend, ProxyEndpoint } from './appliers/proxy/backend.ts';
import { type CertificateSource, certificatesByMode } from './appliers/proxy/certificates.ts';
import { type CloudflareRanges, cloudflareRanges } from './appliers/proxy/cloudflare-ranges.ts';
import { nginxBackend } from './appliers/proxy/nginx/backend.ts';
import type { Log } from './base/log.ts';
import type { Identity } from './base/ownership.ts';
import { type Certificates, combineCertificates } from './certificates/contract.ts';
import { type AcmeService, openAcme } from './certificates/open.ts';
import { OperatorFiles } from './certificates/operator-files.ts';
import { type CloudflareClient, cloudflareClient } from './clients/cloudflare.ts';
import { rfc2136Client } from './clients/rfc2136.ts';
import { writeTsigKey } from './clients/tsig-key.ts';
import { ensureLocalCa, type LocalCa } from './embedded/local-ca.ts';
import { processRuntime } from './embedded/process-runtime.ts';
import { embeddedBackend } from './embedded/proxy/backend.ts';
import type { Env } from './env.ts';
import { dnsLookup } from './host-report/names.ts';

/** nginx hands on what it has accepted within this, before an old container goes. */
const LEAST_DRAIN_MS = 1_000;

/** How long a new container may take until it is healthy: the real image fetches its code from Google first. */
const STARTUP_DEADLINE_MS = 60_000;
/** For each resolver that is asked whether a name leads here. */
const DNS_PATIENCE_MS = 3_000;

export interface Host {
  /** In the order of `TARGETS`. */
  readonly appliers: Applier[];
  readonly certificates: Certificates;
}

/**
 * Every applier of this host from its environment; `stack` takes them down again, also where this fails half-way.
 * Starts the proxy, since what it already serves must not wait for the first pass.
 */
export async function buildAppliers(env: Env, stack: AsyncDisposableStack, log: Log): Promise<Host> {
  const identity: Identity = { instance: env.TAGYARD_INSTANCE, host: env.HOST_NAME };
  const acme = await acmeOf(env, log, () => backend.endpoint());
  const files = await fileCertificates(env);
  const source = certificatesByMode({
    files,
    ...(acme === null ? {} : { acme: acme.keeper }),
  });
  const client = cloudflareClient({
    url: env.CLOUDFLARE_API_URL,
    token: env.CLOUDFLARE_API_TOKEN,
    accountId: env.CLOUDFLARE_ACCOUNT_ID,
    rate: env.CLOUDFLARE_RATE,
  });
  const stopping = new AbortController();
  stack.defer(() => stopping.abort());
  const ranges = await cloudflareRanges({
    file: join(env.STATE_DIR, 'cloudflare-ranges.json'),
    ask: () => client.ranges(stopping.signal),
    now: Date.now,
  });
  const backend = proxyBackend(env, identity, source, acme, ranges);
  stack.defer(() => backend.close());
  const { tlsPort: originPort } = await backend.start();

  const zoneId = env.CLOUDFLARE_ZONE_ID;
  const zone = env.DNS_ZONE ?? env.EDGE_DOMAIN;
  const scriptName = env.EDGE_SCRIPT_NAME;
  const store = edgeStore(client, scriptName);
  const route = { client, store, identity, zoneId, scriptName };
  const recycling = new Recycling({ days: env.RECYCLE_DAYS, now: Date.now });
  const containers = {
    identity,
    loopbackSubnet: env.LOOPBACK_SUBNET,
    originPort,
    startupDeadlineMs: STARTUP_DEADLINE_MS,
    steadyMs: env.SWAP_STEADY_SECONDS * 1000,
    drain: { leastMs: LEAST_DRAIN_MS, mostMs: env.SWAP_DRAIN_SECONDS * 1000 },
    previewIdleMs: env.PREVIEW_IDLE_SECONDS * 1000,
    recycling,
    edition: (site: string) => recycling.edition(site),
    ...caOf(env),
  };
  const host = stack.adopt(containersApplier(containers, containerRuntime(env)), (one) => one.close?.());
  const appliers = [
    host,
    proxyApplier({
      backend,
      identity,
      containers,
      certificates: source,
      isExpecting: () => host.isBringingUp(),
      ranges,
    }),
    kvApplier({ client, store, identity, settings: { originPort } }),
    env.EDGE_ROUTE_MODE === 'wildcard'
      ? wildcardRouteApplier({ ...route, zone: env.EDGE_DOMAIN })
      : routeApplier(route),
    dnsApplier({
      provider: await dnsProvider(env, zone, client),
      identity,
      zone,
      hostAddress: env.HOST_ADDRESS,
      edgeTarget: env.EDGE_TARGET,
    }),
  ];
  const seenTo = [acme?.keeper, files instanceof OperatorFiles ? files : undefined];
  return { appliers, certificates: combineCertificates(seenTo.filter((one) => one !== undefined)) };
}

async function acmeOf(env: Env, log: Log, endpoint: () => ProxyEndpoint): Promise<AcmeService | null> {
  const { ACME_DIRECTORY_URL: directoryUrl, ACME_EMAIL: email, ACME_CA_FILE: caFile } = env;
  if (directoryUrl === undefined) return null;
  return await openAcme(join(env.STATE_DIR, 'acme'), {
    directoryUrl,
    ...(email === undefined ? {} : { email }),
    ...(caFile === undefined ? {} : { caFile }),
    perHour: env.ACME_ORDERS_PER_HOUR,
    addresses: [env.HOST_ADDRESS, ...env.ACME_ADDRESSES],
    lookup: dnsLookup(env.DNS_RESOLVERS, DNS_PATIENCE_MS),
    endpoint,
    log,
  });
}

async function dnsProvider(env: Env, zone: string, client: CloudflareClient): Promise<DnsProvider> {
  if (env.DNS_PROVIDER === 'cloudflare') return cloudflareDns({ client, zoneId: env.CLOUDFLARE_ZONE_ID });
  const { DNS_SERVER: server, DNS_TSIG_NAME: name, DNS_TSIG_SECRET_FILE: secretFile } = env;
  if (!server || !name || !secretFile || !env.EDGE_TARGET) {
    throw new Error(
      'DNS_PROVIDER=rfc2136 needs DNS_SERVER, DNS_TSIG_NAME, DNS_TSIG_SECRET_FILE and EDGE_TARGET',
    );
  }
  const keyFile = join(env.STATE_DIR, 'dns-tsig.key');
  await writeTsigKey(keyFile, { name, algorithm: env.DNS_TSIG_ALGORITHM, secretFile });
  return rfc2136Dns({ client: rfc2136Client({ server, zone, keyFile }), zone });
}

function caOf({ CONTAINER_CA_FILE: caFile }: Env): { caFile?: string } {
  return caFile === undefined ? {} : { caFile };
}

function containerRuntime(env: Env): Runtime {
  if (env.CONTAINERS_DRIVER === 'docker') return dockerRuntime({ docker: new Docker(), ...caOf(env) });
  return processRuntime({ entry: env.TAG_SERVER_ENTRY, ...caOf(env) });
}

function proxyBackend(
  env: Env,
  identity: Identity,
  certificates: CertificateSource,
  acme: AcmeService | null,
  ranges: CloudflareRanges,
): ProxyBackend {
  const systemConfig = env.NGINX_SYSTEM_CONFIG === undefined ? {} : { systemConfig: env.NGINX_SYSTEM_CONFIG };
  const limits = { requestsPerSecond: env.NAME_REQUESTS_PER_SECOND, connections: env.NAME_CONNECTIONS };
  const settings = {
    prefix: join(env.STATE_DIR, 'proxy'),
    listen: env.PROXY_LISTEN,
    httpPort: env.PROXY_HTTP_PORT,
    tlsPort: env.PROXY_TLS_PORT,
    hopSecret: env.HOP_SECRET,
    edgeUpstream: edgeUpstream(env.EDGE_UPSTREAM),
    certificates,
    ...(acme === null ? {} : { challengeKey: acme.thumbprint }),
    trusted: () => ({ cloudflare: ranges.current(), own: env.TRUSTED_PROXIES }),
    identity,
  };
  return env.PROXY_DRIVER === 'nginx'
    ? nginxBackend({ ...settings, bin: env.NGINX_BIN, limits, ...systemConfig })
    : embeddedBackend(settings);
}

function edgeUpstream(text: string): EdgeUpstream {
  const url = new URL(text);
  const scheme = url.protocol === 'https:' ? 'https' : 'http';
  return { scheme, address: url.hostname, port: Number(url.port) || (scheme === 'https' ? 443 : 80) };
}

/** A local CA has one for every name at once, so there is nothing to see to. */
async function fileCertificates(env: Env): Promise<OperatorFiles | LocalCa> {
  if (env.LOCAL_CA_DIR !== undefined) return await ensureLocalCa(env.LOCAL_CA_DIR);
  const keptIn = join(env.STATE_DIR, 'tls-served');
  if (env.TLS_DIR !== undefined) return await OperatorFiles.open({ directory: env.TLS_DIR, keptIn });
  if (env.ACME_DIRECTORY_URL !== undefined) {
    return await OperatorFiles.open({ directory: join(env.STATE_DIR, 'tls'), keptIn });
  }
  throw new Error(
    'neither TLS_DIR nor ACME_DIRECTORY_URL is set: where do certificates of origin, preview and custom domains come from?',
  );
}
