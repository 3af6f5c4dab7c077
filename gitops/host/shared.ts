import type { Identity } from '../../base/ownership.ts';
import type { Applier } from '../appliers/contract.ts';
import { type EdgeStore, edgeStore } from '../appliers/edge/store.ts';
import type { ApplierFactory } from '../appliers/registration.ts';
import { type CloudflareClient, cloudflareClient } from '../clients/cloudflare.ts';
import { dnsLookup } from '../clients/dns-lookup.ts';
import type { Env } from '../env.ts';
import type { EdgePathDeps } from '../host-report/edge-path.ts';
import { askEdge } from '../host-report/edge-visit.ts';
import { nodeLookup } from '../host-report/node-lookup.ts';
import type { DaemonDeps } from '../http/deps.ts';
import type { HostOptions } from './contract.ts';

/** How long a verification or a check of the parts waits for one DNS server. */
const DNS_TIMEOUT_MS = 2_000;

/** What the factories of appliers use on every kind of host. */
export function openSharedServices(env: Env, { log, now }: HostOptions) {
  const identity: Identity = { instance: env.TAGYARD_INSTANCE, host: env.HOST_NAME };
  const client: CloudflareClient = cloudflareClient({
    url: env.CLOUDFLARE_API_URL,
    token: env.CLOUDFLARE_API_TOKEN,
    accountId: env.CLOUDFLARE_ACCOUNT_ID,
    rate: env.CLOUDFLARE_RATE,
    now,
  });
  const store: EdgeStore = edgeStore(client, env.EDGE_SCRIPT_NAME);
  return {
    identity,
    log,
    now,
    stateDir: env.STATE_DIR,
    edgeDomain: env.EDGE_DOMAIN,
    cloudflare: { client, zoneId: env.CLOUDFLARE_ZONE_ID },
    edgeStore: store,
  };
}

/** Creates the appliers in the order of their registrations. `stack` closes them. */
export async function createAppliers<Settings, Services extends object>(
  registrations: readonly ApplierFactory<
    NoInfer<Settings>,
    NoInfer<Services> & { readonly earlier: readonly Applier[] }
  >[],
  { env, services, stack }: { env: Settings; services: Services; stack: AsyncDisposableStack },
): Promise<Applier[]> {
  const appliers: Applier[] = [];
  for (const registration of registrations) {
    const applier = await registration.create(env, { ...services, earlier: [...appliers] });
    appliers.push(stack.adopt(applier, (one) => one.close?.()));
  }
  return appliers;
}

export function edgePathDeps(env: Env, client: CloudflareClient): EdgePathDeps {
  return { client, zoneId: env.CLOUDFLARE_ZONE_ID, script: env.EDGE_SCRIPT_NAME };
}

/** What every host's reports are made with. */
export function reportSettings(env: Env, client: CloudflareClient) {
  return {
    edgePath: edgePathDeps(env, client),
    host: env.HOST_NAME,
    hopSecret: env.HOP_SECRET,
    hasAuthority: env.ACME_DIRECTORY_URL !== undefined,
    edgeTarget: env.EDGE_TARGET,
    edgePublicUrl: env.EDGE_PUBLIC_URL,
    lookup: dnsLookup(env.DNS_RESOLVERS, DNS_TIMEOUT_MS),
  };
}

/** Asks the edge, by its public name, whether it answers for a site. */
export function edgeAnswers(env: Env): NonNullable<DaemonDeps['askEdge']> {
  const { EDGE_PUBLIC_URL: edgePublicUrl, HOP_SECRET: hopSecret } = env;
  const lookup = nodeLookup(dnsLookup(env.DNS_RESOLVERS, DNS_TIMEOUT_MS));
  return (manifest) => askEdge(manifest, { edgePublicUrl, hopSecret, lookup });
}
