import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { insidePolicyName, insidePreviewName } from '../../base/ownership.ts';
import { openInsideCas } from '../../sites/local/inside-cas.ts';
import { ensureLocalCa, type LocalCa } from '../../sites/local/local-ca.ts';
import { policyTokens } from '../../sites/manifest/policy/policy-token.ts';
import { identitiesIn } from '../../sites/manifest/secrets.ts';
import { Slots } from '../../sites/manifest/slots.ts';
import { processRuntime } from '../appliers/containers/process/runtime.ts';
import { Recycling } from '../appliers/containers/recycling.ts';
import { certificatesByMode } from '../appliers/proxy/certificates.ts';
import { cloudflareRanges } from '../appliers/proxy/cloudflare-ranges.ts';
import { proxyDriver } from '../appliers/proxy/driver.ts';
import { listenAddresses } from '../appliers/proxy/listen.ts';
import { combineCertificates } from '../certificates/contract.ts';
import { OperatorFiles } from '../certificates/operator-files.ts';
import { dnsLookup } from '../clients/dns-lookup.ts';
import { dockerBridgeGateway, dockerEngine } from '../clients/docker.ts';
import { ContainerLogs } from '../container-logs/container-logs.ts';
import type { MachineEnv } from '../env.ts';
import { acmeService, operatorFiles, uploadedPairs } from './certificates.ts';
import type { HostOptions } from './contract.ts';
import { openSharedServices } from './shared.ts';

/** The timeout of each resolver that is asked whether a name points here. */
const DNS_TIMEOUT_MS = 3_000;
/** How many lines a second are kept of one container. The others are only counted. */
const LINES_PER_SECOND = 50;

const PROXY_DRIVERS = {
  nginx: async () => (await import('../appliers/proxy/nginx/backend.ts')).nginxBackend,
  embedded: async () => (await import('../appliers/proxy/embedded/backend.ts')).embeddedBackend,
};

/** What the factories of a machine's appliers can use. `stack` closes it. */
export async function openMachineServices(
  env: MachineEnv,
  stack: AsyncDisposableStack,
  { log, now }: HostOptions,
) {
  const shared = openSharedServices(env, { log, now });
  const {
    identity,
    cloudflare: { client },
  } = shared;
  const stopping = new AbortController();
  stack.defer(() => stopping.abort());
  const ranges = await cloudflareRanges({
    file: join(env.STATE_DIR, 'cloudflare-ranges.json'),
    ask: () => client.ranges(stopping.signal),
    now,
  });
  const [ageIdentity = ''] = identitiesIn(await readFile(env.AGE_IDENTITY_FILE, 'utf8'));
  const acme = await acmeService(env, {
    ...{ log, now, secret: ageIdentity },
    endpoint: () => proxy.endpoint(),
    addresses: [env.HOST_ADDRESS, ...env.ACME_ADDRESSES],
    lookup: dnsLookup(env.DNS_RESOLVERS, DNS_TIMEOUT_MS),
  });
  const files = await fileCertificates(env);
  const uploaded = await uploadedPairs(env);
  // Docker gives each site a network of its own; child processes use the host's.
  const ownNetwork = env.CONTAINERS_DRIVER === 'docker';
  const inside = await openInsideCas(join(env.STATE_DIR, 'inside'), { secret: ageIdentity });
  const certificates = certificatesByMode({
    files,
    ...(acme === null ? {} : { acme: acme.keeper }),
    uploaded,
    inside,
  });
  const docker = ownNetwork ? await dockerEngine() : null;
  const proxy = await proxyDriver(env, {
    stateDir: env.STATE_DIR,
    listen: docker
      ? await listenAddresses(env.PROXY_LISTEN, {
          gateway: () => dockerBridgeGateway(docker),
          isSystems: env.NGINX_SYSTEM_CONFIG !== undefined,
          log,
        })
      : env.PROXY_LISTEN,
    hopSecret: env.HOP_SECRET,
    previousHopSecret: env.HOP_SECRET_PREVIOUS,
    challengeKey: acme?.thumbprint ?? null,
    identity,
    certificates,
    ranges,
    now,
    log,
    drivers: PROXY_DRIVERS,
  });
  stack.defer(() => proxy.close());
  const { tlsPort: originPort } = await proxy.start();
  const containerLogs = new ContainerLogs({
    dir: join(env.STATE_DIR, 'container-logs'),
    kept: env.CONTAINER_LOGS === 'all' ? 'all' : 'json',
    keepDays: env.KEEP_CONTAINER_LOGS_DAYS,
    megabytes: env.CONTAINER_LOGS_MB,
    linesPerSecond: LINES_PER_SECOND,
    log,
  });
  await containerLogs.open();
  stack.defer(() => containerLogs.close());
  const recycling = new Recycling({ days: env.RECYCLE_DAYS, now });
  const renewed = [acme?.keeper, uploaded, files instanceof OperatorFiles ? files : undefined];
  return {
    containerLogs,
    certificates: combineCertificates(renewed.filter((one) => one !== undefined)),
    services: {
      ...shared,
      docker,
      hostAddress: env.HOST_ADDRESS,
      certificates,
      ranges,
      proxy,
      recycling,
      inside,
      // All appliers that derive addresses of containers must use the same settings.
      containers: {
        slots: new Slots(env.LOOPBACK_SUBNET),
        ownNetwork,
        ...(ownNetwork ? { previewNameOf: (site: string) => insidePreviewName(identity, site) } : {}),
        // Loopback addresses are reached by names under `.localhost`, which need no DNS.
        policyScripts: {
          nameOf: (site: string) => `${insidePolicyName(identity, site)}${ownNetwork ? '' : '.localhost'}`,
          tokenOf: policyTokens(ageIdentity),
        },
        originPort,
        edition: (site: string) => recycling.edition(site),
      },
      output: env.CONTAINER_LOGS === 'off' ? null : containerLogs,
      embedded: { containerRuntime: processRuntime },
    },
  };
}

/** A local CA issues a certificate for any name on demand; an operator's files are watched. */
async function fileCertificates(env: MachineEnv): Promise<OperatorFiles | LocalCa> {
  return env.LOCAL_CA_DIR === undefined ? await operatorFiles(env) : await ensureLocalCa(env.LOCAL_CA_DIR);
}
