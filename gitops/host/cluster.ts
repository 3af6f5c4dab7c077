import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { tlsOf } from '../../sites/manifest/certificate-check.ts';
import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import { Recycling } from '../appliers/containers/recycling.ts';
import { CLUSTER_APPLIERS } from '../appliers/index.ts';
import { combineCertificates } from '../certificates/contract.ts';
import { dnsLookup } from '../clients/dns-lookup.ts';
import type { ClusterEnv } from '../env.ts';
import { checkGateway } from '../host-report/gateway-check.ts';
import { checkNetworkPolicies } from '../host-report/network-policy.ts';
import { nodeLookup } from '../host-report/node-lookup.ts';
import { unusedPart } from '../host-report/part-checks.ts';
import { hostReporter } from '../host-report/report.ts';
import { availablePreviews } from '../kubernetes/applier/available-previews.ts';
import { type GatewaySource, openCluster } from '../kubernetes/applier/cluster.ts';
import { nameServerPods, readyPods } from '../kubernetes/applier/ready-pods.ts';
import { checkPart } from '../report/check-part.ts';
import type { ClusterOptions, Host } from './contract.ts';
import { gatewayDestination } from './gateway-destination.ts';
import { addressesOf, gatewaySource } from './gateway-source.ts';
import { checkHostParts, tryHostSettings } from './preflight.ts';
import { createAppliers, openSharedServices, reportSettings } from './shared.ts';

/** A connection is tried to the pods of this many sites: policies are enforced for all sites or for none. */
const TRIED_SITES = 3;
/** Source: Kubernetes, Accessing the API from a Pod. */
const NAMESPACE_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';
/** The timeout of each resolver that is asked where a balancer's name leads. */
const DNS_TIMEOUT_MS = 2_000;

/** A Kubernetes cluster, which schedules and restarts the sites' pods. `stack` closes what is opened. */
export async function buildCluster(
  env: ClusterEnv,
  stack: AsyncDisposableStack,
  { log, now, ordinal }: ClusterOptions,
): Promise<Host> {
  const shared = openSharedServices(env, { log, now });
  const recycling = new Recycling({ days: env.RECYCLE_DAYS, now });
  const port = env.KUBERNETES_TLS_PORT;
  // Set below: the cluster is opened with the gateway's source, and this source asks only later where names lead.
  let destination: ReturnType<typeof gatewayDestination>;
  const delivered = await gatewaySource(env, stack, {
    ...{ log, now },
    cloudflare: shared.cloudflare.client,
    destination: () => destination,
  });
  const kubernetes = await openCluster(env, {
    ...{ identity: shared.identity, log, ordinal },
    gateway: delivered?.source ?? null,
    originPort: port,
    edition: (site) => recycling.edition(site),
  });
  stack.defer(() => kubernetes.close());
  destination = gatewayDestination(env, kubernetes.client);
  stack.defer(() => destination.close());
  const services = { ...shared, kubernetes, hostAddress: destination, containers: { originPort: port } };
  const appliers = await createAppliers(CLUSTER_APPLIERS, { env, services, stack });
  const lookup = dnsLookup(env.DNS_RESOLVERS, DNS_TIMEOUT_MS);
  const checkFirst = async ([site]: readonly LoadedManifest[], { pairs }: GatewaySource) => {
    if (site === undefined) return unusedPart('gateway');
    const { origin: host } = site.hostnames;
    return await checkGateway(host, {
      lookup: nodeLookup(lookup),
      port,
      hopSecret: env.HOP_SECRET,
      certificate: async () => (await pairs.pairFor({ host, tls: tlsOf(site.tls, host) }))?.cert ?? null,
    });
  };
  return {
    appliers,
    certificates: delivered?.certificates ?? combineCertificates([]),
    profiles: shared.edgeStore,
    async reportSite(manifest) {
      const address = destination.current();
      const report = hostReporter({
        ...reportSettings(env, shared.cloudflare.client),
        hostAddresses: await addressesOf(address, lookup),
        otherAddresses: env.ACME_ADDRESSES,
        proxy: { address, port },
        previews: async (site, signal) => await availablePreviews(kubernetes, site, signal),
      });
      return await report(manifest);
    },
    conditionsOf(site) {
      const message = kubernetes.failedPreviews?.messageOf(site) ?? null;
      return message === null ? [] : [{ condition: 'preview_failed', message }];
    },
    async checkParts(sites) {
      const checks = await Promise.all([
        checkHostParts(env, { client: shared.cloudflare.client, sites }),
        delivered === null ? [] : checkFirst(sites, delivered.source),
        checkPart('cluster', {
          fix: 'silent',
          async ask(signal) {
            const { gitVersion } = version.parse(await kubernetes.client.raw('/version', signal));
            return `Kubernetes ${gitVersion} answers`;
          },
        }),
        checkNetworkPolicies(async (signal) => {
          const tried = sites.slice(0, TRIED_SITES).map((site) => readyPods(kubernetes, site, signal));
          const [pods, others, own] = await Promise.all([
            Promise.all(tried),
            nameServerPods(kubernetes, signal),
            ownNamespace(),
          ]);
          const gateway = env.KUBERNETES_GATEWAY_NAMESPACE;
          return {
            pods: pods.flat(),
            others,
            admitted: gateway === undefined ? env.KUBERNETES_ADMIT_CIDRS : [],
            isAdmitted: gateway !== undefined && gateway === own,
          };
        }),
      ]);
      return checks.flat();
    },
    trySettings: async (sites) =>
      await tryHostSettings(env, { client: shared.cloudflare.client, sites, proxy: null }),
  };
}

/** The namespace of the pod in which this runs; `null`: it runs in none. */
async function ownNamespace(): Promise<string | null> {
  try {
    return (await readFile(NAMESPACE_FILE, 'utf8')).trim();
  } catch {
    return null;
  }
}

const version = z.object({ gitVersion: z.string() });
