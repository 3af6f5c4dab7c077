import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { withinTime } from '../../base/time-limit.ts';
import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import { sitesRepoOf } from '../../sites/repo/sites-repo.ts';
import { RECORDS_PER_SITE } from '../appliers/dns/applier.ts';
import { recordQuota } from '../appliers/dns/record-quota.ts';
import type { ProxyEndpoint } from '../appliers/proxy/backend.ts';
import { edgeUpstream } from '../appliers/proxy/driver.ts';
import { runningMaster } from '../appliers/proxy/nginx/process.ts';
import { type CloudflareClient, cloudflareClient } from '../clients/cloudflare.ts';
import { type DnsLookup, dnsLookup } from '../clients/dns-lookup.ts';
import { dockerBridgeGateway, dockerDataRoot } from '../clients/docker.ts';
import type { Env, MachineEnv } from '../env.ts';
import { checkEdgeKv, checkToken, checkZone } from '../host-report/cloudflare-checks.ts';
import { checkDnsServer } from '../host-report/dns-server-check.ts';
import { checkEdgeNames } from '../host-report/edge-names.ts';
import { checkEdgePart, siteHosts } from '../host-report/edge-path.ts';
import { nodeLookup } from '../host-report/node-lookup.ts';
import {
  checkDisk,
  checkDockerBridge,
  checkDockerDisk,
  checkEdge,
  unusedPart,
} from '../host-report/part-checks.ts';
import {
  checkAcme,
  checkAgeIdentity,
  checkDnsZones,
  checkHostAddress,
  checkKeyFiles,
  checkNginx,
} from '../host-report/setting-checks.ts';
import { checkUpstream } from '../host-report/upstream-check.ts';
import { checkWorkerBindings, checkWorkerLogs } from '../host-report/worker-checks.ts';
import { checkQuotas } from '../http/quotas.ts';
import { PART_TIMEOUT_MS, skippedPart, textOfError } from '../report/check-part.ts';
import { checkClock, checkPorts, checkRights } from '../report/common-checks.ts';
import { type QuotaFigures, statusOf } from '../report/quotas.ts';
import type { PartCheck } from '../report/report.ts';
import { edgePathDeps } from './shared.ts';

/** How long a check waits for one DNS server. */
const DNS_TIMEOUT_MS = 2_000;
/** No site has this name. */
const NO_SITE = 'tagyard-check';

interface PreflightDeps {
  readonly client: CloudflareClient;
  /** AGE_RECIPIENT; unset: it isn't known here. */
  readonly recipient?: string | undefined;
  /** The applied sites. */
  readonly sites: readonly LoadedManifest[];
  /** `null`: the proxy doesn't run. */
  readonly proxy: ProxyEndpoint | null;
}

/**
 * Tries each setting of a host: `tagyard check` does it before the first start, each start logs what is found, and
 * `GET /health` does it where that is asked for. None throws.
 */
export async function tryHostSettings(
  env: Env,
  { client, recipient, sites, proxy }: PreflightDeps,
): Promise<PartCheck[]> {
  const { CLOUDFLARE_ZONE_ID: zoneId, EDGE_SCRIPT_NAME: script, HOP_SECRET: hopSecret } = env;
  const account = { client, zoneId, script };
  const [site] = sites;
  const upstream = env.EDGE_UPSTREAM === undefined ? null : edgeUpstream(env.EDGE_UPSTREAM);
  return (
    await Promise.all([
      checkClock(env.CLOUDFLARE_API_URL),
      checkAgeIdentity(env.AGE_IDENTITY_FILE, recipient),
      checkRights(sitesRepoOf(env)),
      checkZone(account, env.EDGE_DOMAIN),
      checkToken(account, { writesDns: env.DNS_PROVIDER === 'cloudflare' }),
      checkEdgeKv(account),
      upstream === null
        ? []
        : checkUpstream({
            ...{ upstream, name: edgeNameOf(env, site), isSite: site !== undefined, hopSecret },
            previousHopSecret: env.HOP_SECRET_PREVIOUS,
          }),
      checkDnsZones(
        {
          EDGE_DOMAIN: env.EDGE_DOMAIN,
          ...(env.ORIGIN_DOMAIN === undefined ? {} : { ORIGIN_DOMAIN: env.ORIGIN_DOMAIN }),
        },
        env.DNS_RESOLVERS,
      ),
      env.ACME_DIRECTORY_URL === undefined ? [] : checkAcme(env.ACME_DIRECTORY_URL, env.ACME_CA_FILE),
      dnsServer(env),
      env.HOST_KIND === 'machine' ? tryMachineSettings(env, { sites, proxy }) : [],
    ])
  ).flat();
}

async function tryMachineSettings(
  env: MachineEnv,
  { sites: [site], proxy }: Pick<PreflightDeps, 'sites' | 'proxy'>,
): Promise<PartCheck[]> {
  const served =
    site === undefined || proxy === null
      ? null
      : { name: site.hostnames.origin, address: proxy.address, port: proxy.tlsPort };
  return (
    await Promise.all([
      checkKeyFiles({
        AGE_IDENTITY_FILE: env.AGE_IDENTITY_FILE,
        DNS_TSIG_SECRET_FILE: env.DNS_TSIG_SECRET_FILE,
        ACME_EAB_HMAC_KEY_FILE: env.ACME_EAB_HMAC_KEY_FILE,
        SITES_REPO_PASSWORD_FILE: env.SITES_REPO_PASSWORD_FILE,
        SITES_SIGNING_KEY_FILE: env.SITES_SIGNING_KEY_FILE,
        SITES_WEBHOOK_SECRET_FILE: env.SITES_WEBHOOK_SECRET_FILE,
        TLS_DIR: env.TLS_DIR,
      }),
      checkHostAddress(env.HOST_ADDRESS, served),
      env.PROXY_DRIVER === 'nginx'
        ? checkNginx(env.NGINX_BIN, {
            systemConfig: env.NGINX_SYSTEM_CONFIG,
            prefix: join(env.STATE_DIR, 'proxy'),
          })
        : [],
    ])
  ).flat();
}

/** The checks of the parts that a host needs, whether or not it runs: each answer of `GET /health` has them. None throws. */
export async function checkHostParts(
  env: Env,
  { client, sites }: Pick<PreflightDeps, 'client' | 'sites'>,
): Promise<PartCheck[]> {
  const resolver = dnsLookup(env.DNS_RESOLVERS, DNS_TIMEOUT_MS);
  const { CLOUDFLARE_ZONE_ID: zoneId, EDGE_SCRIPT_NAME: script, HOP_SECRET: hopSecret } = env;
  const [site] = sites;
  const url = site && new URL(env.EDGE_PUBLIC_URL.replace('{host}', site.hostnames.edge));
  const upstream = env.EDGE_UPSTREAM === undefined ? null : edgeUpstream(env.EDGE_UPSTREAM);
  const isDocker = env.HOST_KIND === 'machine' && env.CONTAINERS_DRIVER === 'docker';
  return (
    await Promise.all([
      existsSync(env.STATE_DIR)
        ? checkDisk(env.STATE_DIR)
        : skippedPart('disk', `STATE_DIR: ${env.STATE_DIR} is made at the first start`),
      checkWorkerLogs({ client, script }),
      checkWorkerBindings({ client, script }),
      checkEdgePart(edgePathDeps(env, client), sites.map(siteHosts)),
      url === undefined ? unusedPart('edge') : checkEdge(url, { lookup: nodeLookup(resolver), hopSecret }),
      // Before the first site, the certificate for any name under EDGE_DOMAIN shows what the sites will have.
      checkEdgeNames(
        {
          ...{ client, zoneId, edgePublicUrl: env.EDGE_PUBLIC_URL },
          lookup: site === undefined && upstream !== null ? at(upstream.address) : resolver,
          ...(site === undefined && upstream !== null ? { port: upstream.port } : {}),
        },
        site === undefined ? [edgeNameOf(env, site)] : sites.map(({ hostnames }) => hostnames.edge),
      ),
      isDocker ? checkDockerDisk(() => dockerDataRoot()) : [],
      isDocker ? checkDockerBridge(() => dockerBridgeGateway()) : [],
    ])
  ).flat();
}

function edgeNameOf(env: Env, site: LoadedManifest | undefined): string {
  return site?.hostnames.edge ?? `${NO_SITE}.${env.EDGE_DOMAIN}`;
}

function dnsServer(env: Env): Promise<PartCheck> | readonly PartCheck[] {
  const { DNS_PROVIDER, DNS_SERVER: server, DNS_TSIG_NAME: name, DNS_TSIG_SECRET_FILE: secretFile } = env;
  if (DNS_PROVIDER !== 'rfc2136' || !server || !name || !secretFile) return [];
  const zone = env.DNS_ZONE ?? env.EDGE_DOMAIN;
  return checkDnsServer({ server, zone }, { name, algorithm: env.DNS_TSIG_ALGORITHM, secretFile });
}

function at(address: string): DnsLookup {
  return { addresses: async () => [address], alias: async () => null };
}

/**
 * The same before a start, or beside a running daemon: also the ports, and the quotas, which the daemon knows by its
 * observations. `recipient`: AGE_RECIPIENT, where management's settings are here, too.
 */
export async function checkSettings(env: Env, recipient: string | undefined): Promise<PartCheck[]> {
  const client = cloudflareClient({
    url: env.CLOUDFLARE_API_URL,
    token: env.CLOUDFLARE_API_TOKEN,
    accountId: env.CLOUDFLARE_ACCOUNT_ID,
    rate: env.CLOUDFLARE_RATE,
  });
  const checks = await Promise.all([
    checkPorts(await portsOf(env)),
    checkRoom(env, client),
    tryHostSettings(env, { client, recipient, sites: [], proxy: null }),
    checkHostParts(env, { client, sites: [] }),
  ]);
  return checks.flat();
}

async function portsOf(env: Env): Promise<Parameters<typeof checkPorts>[0]> {
  const isRunning = isAlive(join(env.STATE_DIR, 'lock.pid'));
  const own = { setting: 'PROVISIONER_PORT', host: env.PROVISIONER_ADDRESS, port: env.PROVISIONER_PORT };
  const provisioner = { ...own, isOurs: isRunning };
  if (env.HOST_KIND !== 'machine' || env.NGINX_SYSTEM_CONFIG !== undefined) return [provisioner];
  const isOurs =
    env.PROXY_DRIVER === 'nginx' ? (await runningMaster(join(env.STATE_DIR, 'proxy'))) !== null : isRunning;
  const proxy = env.PROXY_LISTEN.flatMap((host) => [
    { setting: 'PROXY_HTTP_PORT', host, port: env.PROXY_HTTP_PORT, isOurs },
    { setting: 'PROXY_TLS_PORT', host, port: env.PROXY_TLS_PORT, isOurs },
  ]);
  return [provisioner, ...proxy];
}

/** Whether the process runs whose id the file has. */
function isAlive(pidFile: string): boolean {
  try {
    process.kill(Number(readFileSync(pidFile, 'utf8')), 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

async function checkRoom(env: Env, client: CloudflareClient): Promise<PartCheck> {
  const zoneId = env.CLOUDFLARE_ZONE_ID;
  try {
    return await withinTime(PART_TIMEOUT_MS, async (signal) => {
      const [routes, records, limit] = await Promise.all([
        client.routes(zoneId, signal),
        env.DNS_PROVIDER === 'cloudflare' ? client.dnsRecords(zoneId, {}, signal) : null,
        env.DNS_RECORD_QUOTA ?? recordQuota(client, zoneId, signal),
      ]);
      const routeMode = env.EDGE_ROUTE_MODE === 'site' ? 'site' : 'wildcard';
      const recordMode = env.DNS_RECORD_MODE === 'site' ? 'site' : 'wildcard';
      const figures: QuotaFigures[] = [
        {
          ...{ name: 'worker_routes', mode: routeMode, perSite: routeMode === 'site' ? 1 : 0 },
          ...{ used: routes.length, limit: env.WORKER_ROUTE_QUOTA },
        },
      ];
      if (records !== null) {
        const perSite = RECORDS_PER_SITE[recordMode];
        figures.push({ name: 'dns_records', mode: recordMode, perSite, used: records.length, limit });
      }
      return checkQuotas(figures.map((figure) => statusOf(figure, [])));
    });
  } catch (error) {
    return skippedPart('quotas', textOfError(error));
  }
}
