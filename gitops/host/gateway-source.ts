import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { LRUCache } from 'lru-cache';
import { openPolicyAuthority } from '../../sites/local/policy-authority.ts';
import { policyTokens } from '../../sites/manifest/policy/policy-token.ts';
import { identitiesIn } from '../../sites/manifest/secrets.ts';
import type { FollowedDestination } from '../appliers/followed-destination.ts';
import { type CertificatePaths, certificatesByMode } from '../appliers/proxy/certificates.ts';
import { cloudflareRanges } from '../appliers/proxy/cloudflare-ranges.ts';
import { edgeUpstream } from '../appliers/proxy/driver.ts';
import { type Certificates, combineCertificates } from '../certificates/contract.ts';
import type { CloudflareClient } from '../clients/cloudflare.ts';
import { type DnsLookup, dnsLookup } from '../clients/dns-lookup.ts';
import type { ClusterEnv } from '../env.ts';
import type { GatewaySource } from '../kubernetes/applier/cluster.ts';
import type { InstanceDocument } from '../kubernetes/delivery/documents.ts';
import { acmeService, operatorFiles, uploadedPairs } from './certificates.ts';
import type { ClusterOptions } from './contract.ts';

/** The timeout of each resolver that is asked whether a name points to the gateway. */
const DNS_TIMEOUT_MS = 3_000;
const UNKNOWN_ADDRESS = 'the address of the cluster’s gateway isn’t known yet';
/** The most certificates that are kept in memory with their keys: five kilobytes each. */
const MOST_PAIRS = 10_000;

interface SourceDeps extends Pick<ClusterOptions, 'log' | 'now'> {
  readonly cloudflare: CloudflareClient;
  /** Where the sites' names lead. Must not be called before the cluster is open. */
  readonly destination: () => Pick<FollowedDestination, 'current'>;
}

/**
 * What gateways serve according to the settings, and the certificates that are kept for them. `null`: nothing is
 * delivered, because KUBERNETES_GATEWAY_NAMESPACE is unset. Throws where a setting is missing.
 */
export async function gatewaySource(
  env: ClusterEnv,
  stack: AsyncDisposableStack,
  { log, now, cloudflare, destination }: SourceDeps,
): Promise<{ readonly source: GatewaySource; readonly certificates: Certificates } | null> {
  if (env.KUBERNETES_GATEWAY_NAMESPACE === undefined) return null;
  if (env.EDGE_UPSTREAM === undefined) {
    throw new Error('set EDGE_UPSTREAM: the gateway leads custom domains to this address of the edge');
  }
  const edge = edgeUpstream(env.EDGE_UPSTREAM);
  const stopping = new AbortController();
  stack.defer(() => stopping.abort());
  const ranges = await cloudflareRanges({
    file: join(env.STATE_DIR, 'cloudflare-ranges.json'),
    ask: () => cloudflare.ranges(stopping.signal),
    now,
  });
  const lookup = dnsLookup(env.DNS_RESOLVERS, DNS_TIMEOUT_MS);
  const addresses: string[] = [...env.ACME_ADDRESSES];
  const current = () => destination().current();
  const [identity = ''] = identitiesIn(await readFile(env.AGE_IDENTITY_FILE, 'utf8'));
  const acme = await acmeService(env, {
    ...{ log, now, addresses, secret: identity },
    lookup: {
      ...lookup,
      async addresses(host) {
        // The addresses of a site's name are compared with those that the gateway's Service has now.
        const known = await addressesOf(current(), lookup);
        const found = await lookup.addresses(host);
        // Known addresses stay while the current ones are unknown: other checks may be comparing with them.
        if (known.length > 0) addresses.splice(0, addresses.length, ...known, ...env.ACME_ADDRESSES);
        const isFurther = found.length > 0 && found.every((address) => env.ACME_ADDRESSES.includes(address));
        if (known.length === 0 && !isFurther) throw new Error(UNKNOWN_ADDRESS);
        return found;
      },
    },
    endpoint() {
      const address = current();
      if (address === null) throw new Error(UNKNOWN_ADDRESS);
      return { address, httpPort: env.KUBERNETES_HTTP_PORT, tlsPort: env.KUBERNETES_TLS_PORT };
    },
  });
  const files = await operatorFiles(env);
  const uploaded = await uploadedPairs(env);
  const policies = await openPolicyAuthority(identity);
  const certificates = certificatesByMode({
    files,
    uploaded,
    ...(acme === null ? {} : { acme: acme.keeper }),
  });
  /** One read serves all names of a certificate. Limited, because months may pass between calls of `retain`. */
  const pems = new LRUCache<string, ReturnType<typeof readPem>>({ max: MOST_PAIRS });
  const instance = (): InstanceDocument => ({
    version: 1,
    hopSecret: {
      current: env.HOP_SECRET,
      ...(env.HOP_SECRET_PREVIOUS === undefined ? {} : { previous: env.HOP_SECRET_PREVIOUS }),
    },
    trusted: { cloudflare: [...ranges.current()], own: env.TRUSTED_PROXIES },
    edge,
    ...(acme === null ? {} : { challengeKey: acme.thumbprint }),
  });
  return {
    certificates: combineCertificates([files, uploaded, ...(acme === null ? [] : [acme.keeper])]),
    source: {
      instance,
      policies: { ca: policies.ca, tokenOf: policyTokens(identity) },
      refresh: () => ranges.refresh(),
      pairs: {
        async pairFor({ host, tls }) {
          if (tls === 'inside') return await policies.pairFor(host);
          const paths = await certificates.pathsFor(host, tls);
          if (paths === null) return null;
          // A renewed certificate keeps its path, so this key contains its edition. A new copy of an operator's files has a
          // new path.
          const key = `${paths.cert} ${certificates.edition?.(host, tls) ?? ''}`;
          const pair = pems.get(key) ?? readPem(paths);
          pems.set(key, pair);
          pair.catch(() => pems.delete(key));
          return await pair;
        },
        async retain(names) {
          pems.clear();
          policies.retain(new Set(names.flatMap(({ host, tls }) => (tls === 'inside' ? [host] : []))));
          await certificates.retain(names.filter(({ tls }) => tls !== 'inside'));
        },
      },
    },
  };
}

/** The addresses of a destination: an address itself, or those of a name. */
export async function addressesOf(
  destination: string | null,
  lookup: Pick<DnsLookup, 'addresses'>,
): Promise<readonly string[]> {
  if (destination === null) return [];
  return isIP(destination) === 0 ? await lookup.addresses(destination).catch(() => []) : [destination];
}

const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[^-]*-----END \1-----/g;

/** Both files may be one, with the key and the chain. */
async function readPem({ cert, key }: CertificatePaths) {
  const [certText, keyText] = await Promise.all([readFile(cert, 'utf8'), readFile(key, 'utf8')]);
  const blocks = (text: string, isWanted: (label: string) => boolean) =>
    [...text.matchAll(BLOCK)]
      .flatMap(([block, label = '']) => (isWanted(label) ? [`${block}\n`] : []))
      .join('');
  return {
    cert: blocks(certText, (label) => label === 'CERTIFICATE'),
    key: blocks(keyText, (label) => label.endsWith('PRIVATE KEY')),
  };
}
