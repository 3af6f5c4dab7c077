import { join } from 'node:path';
import type { z } from 'zod';
import type { Identity } from '../../../base/ownership.ts';
import type { CloudflareClient } from '../../clients/cloudflare.ts';
import { rfc2136Client } from '../../clients/rfc2136.ts';
import { writeTsigKey } from '../../clients/tsig-key.ts';
import type { FollowedDestination } from '../followed-destination.ts';
import type { Registration } from '../registration.ts';
import { dnsApplier } from './applier.ts';
import { cloudflareDns } from './cloudflare.ts';
import { DNS } from './desired.ts';
import { followedDns } from './followed.ts';
import type { DnsProvider } from './provider.ts';
import { recordQuota } from './record-quota.ts';
import { rfc2136Dns } from './rfc2136.ts';
import { dnsSettings } from './settings.ts';

interface Services {
  readonly identity: Identity;
  readonly cloudflare: { readonly client: CloudflareClient; readonly zoneId: string };
  readonly edgeDomain: string;
  /** An address, or what finds it. */
  readonly hostAddress: string | FollowedDestination;
  readonly stateDir: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** The DNS records of a site's hostnames, at Cloudflare or at a primary server that accepts RFC 2136 updates. */
export const dns: Registration<typeof dnsSettings, Services> = {
  ...DNS,
  settings: dnsSettings,
  async create(settings, services) {
    const mode = modeOf(settings);
    const zone = settings.DNS_ZONE ?? services.edgeDomain;
    const options = {
      provider: await provider(settings, zone, services),
      identity: services.identity,
      zone,
      edgeTarget: settings.EDGE_TARGET,
      quota: quotaOf(settings, services),
    };
    const { hostAddress } = services;
    if (typeof hostAddress === 'string') return dnsApplier({ ...options, hostAddress, mode });
    // A wildcard can't lead to a host name, and would lead to an old address until the new one is written to it.
    if (mode === 'wildcard')
      throw new Error('DNS_RECORD_MODE=wildcard needs a host with an address of its own');
    return followedDns(hostAddress, (current) =>
      dnsApplier({ ...options, hostAddress: current, mode: 'site' }),
    );
  },
};

/**
 * With RFC 2136 the mode is always `site`: the operator's own primary has no quota, and the mark below each name
 * prevents a wildcard from covering the name.
 */
function modeOf({ DNS_PROVIDER, DNS_RECORD_MODE: mode }: z.output<typeof dnsSettings>) {
  if (DNS_PROVIDER === 'cloudflare') return mode;
  if (mode === 'wildcard') throw new Error('DNS_RECORD_MODE=wildcard needs DNS_PROVIDER=cloudflare');
  return 'site';
}

/** The zone's plan at Cloudflare seldom changes. A failed request is repeated sooner. */
const QUOTA_MS = 3_600_000;
const QUOTA_RETRY_MS = 600_000;

function quotaOf(
  { DNS_PROVIDER, DNS_RECORD_QUOTA: given }: z.output<typeof dnsSettings>,
  { cloudflare: { client, zoneId }, now }: Services,
) {
  if (DNS_PROVIDER !== 'cloudflare') return undefined;
  let known: { readonly limit: number | null; readonly until: number } | null = null;
  return async (signal: AbortSignal): Promise<number | null> => {
    if (given !== undefined) return given;
    if (known !== null && now() < known.until) return known.limit;
    try {
      known = { limit: await recordQuota(client, zoneId, signal), until: now() + QUOTA_MS };
    } catch {
      // The last figure holds: the records themselves can be read and written without it.
      known = { limit: known?.limit ?? null, until: now() + QUOTA_RETRY_MS };
    }
    return known.limit;
  };
}

async function provider(
  settings: z.output<typeof dnsSettings>,
  zone: string,
  { cloudflare, stateDir }: Services,
): Promise<DnsProvider> {
  if (settings.DNS_PROVIDER === 'cloudflare') return cloudflareDns(cloudflare);
  const { DNS_SERVER: server, DNS_TSIG_NAME: name, DNS_TSIG_SECRET_FILE: secretFile } = settings;
  if (!server || !name || !secretFile || !settings.EDGE_TARGET) {
    throw new Error(
      'DNS_PROVIDER=rfc2136 needs DNS_SERVER, DNS_TSIG_NAME, DNS_TSIG_SECRET_FILE and EDGE_TARGET',
    );
  }
  const keyFile = join(stateDir, 'dns-tsig.key');
  await writeTsigKey(keyFile, { name, algorithm: settings.DNS_TSIG_ALGORITHM, secretFile });
  return rfc2136Dns({ client: rfc2136Client({ server, zone, keyFile }), zone });
}
