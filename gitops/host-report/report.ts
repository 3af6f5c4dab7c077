import type { LookupFunction } from 'node:net';
import type { HostReport } from '../../edge/verification/contract.ts';
import type { Applier } from '../appliers/contract.ts';
import type { LoadedManifest } from '../manifest/containers.ts';
import { describeSite } from '../manifest/description.ts';
import { readConfig } from './config.ts';
import { type DnsLookup, lookUpNames, type NameDestinations } from './names.ts';
import { lookAtCertificate, type Shown } from './served-certificate.ts';
import { arriveBy, type WayIn } from './visit.ts';

/** Everything is asked at once; what hasn't answered by then is reported as that. */
const PATIENCE_MS = 3_500;

export interface HostReportDeps extends NameDestinations {
  readonly host: string;
  readonly edgePublicUrl: string;
  /** Where this host itself reaches its proxy's TLS. */
  readonly proxy: { readonly address: string; readonly port: number };
  readonly lookup: DnsLookup;
  readonly containers: Pick<Applier, 'desired' | 'observe'>;
}

/** What only this host sees of one of its sites. */
export type ReportSite = (manifest: LoadedManifest) => Promise<HostReport>;

/**
 * Reports on a site: DNS answers, certificates, how many preview servers run, and with which address a visitor
 * arrives. Custom domains are visited at this host's own proxy, wherever their DNS leads: a client must not be able to
 * send this host to a place of its choice.
 */
export function hostReporter(deps: HostReportDeps): ReportSite {
  const { host, hostAddress, edgePublicUrl, proxy, lookup, containers } = deps;
  return async (manifest) => {
    const site = describeSite(manifest, { edgePublicUrl, tlsPort: proxy.port });
    const edge = new URL(site.edge);
    const { origin, preview } = manifest.hostnames;
    const shown: Shown[] = [origin, preview, ...manifest.customDomains].map((name) => ({ name, ...proxy }));
    if (edge.protocol === 'https:') {
      shown.unshift({ name: edge.hostname, address: edge.hostname, port: Number(edge.port) || 443 });
    }
    const ways: WayIn[] = [
      { url: edge },
      ...site.customDomains.map((url) => ({ url: new URL(url), socket: proxy })),
    ];
    const visit = { hostAddress, lookup: nodeLookup(lookup), timeoutMs: PATIENCE_MS };
    const [names, certificates, arrivals, previews] = await Promise.all([
      lookUpNames(manifest, deps, lookup),
      Promise.all(shown.map((one) => lookAtCertificate(one, PATIENCE_MS))),
      Promise.all(ways.map((way) => arriveBy(way, visit))),
      countPreviews(manifest, containers),
    ]);
    return { host, site, config: readConfig(manifest.config), previews, names, certificates, arrivals };
  };
}

/** Running ones with our mark, whether they are wanted or not. */
async function countPreviews(
  manifest: LoadedManifest,
  containers: Pick<Applier, 'desired' | 'observe'>,
): Promise<HostReport['previews']> {
  const desired = containers.desired(manifest);
  const scope = { sites: new Set([manifest.site]), keys: new Set(desired.map(({ key }) => key)) };
  try {
    const observed = await containers.observe(desired, AbortSignal.timeout(PATIENCE_MS), scope);
    const serving = observed.filter(
      ({ key, hash, owner }) =>
        hash !== null && owner.kind === 'ours' && key.startsWith(`${manifest.site}/preview/`),
    );
    return { count: serving.length, problem: null };
  } catch (error) {
    return { count: null, problem: error instanceof Error ? error.message : String(error) };
  }
}

/** The same lookup for Node's own sockets. */
function nodeLookup(lookup: DnsLookup): LookupFunction {
  return (name, { all }, done) => {
    lookup.addresses(name).then(
      (addresses) => {
        const found = addresses
          .filter((address) => !address.includes(':'))
          .map((address) => ({ address, family: 4 }));
        const [first] = found;
        if (first === undefined)
          done(Object.assign(new Error(`${name} has no IPv4 address`), { code: 'ENOTFOUND' }), '');
        else if (all) done(null, found);
        else done(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => done(error, ''),
    );
  };
}
