import type { HostReport } from '../../edge/verification/contract.ts';
import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import { describeSite } from '../../sites/manifest/description.ts';
import { provenHosts } from '../../sites/manifest/schema.ts';
import { acmeRemedy, filesRemedy, UPLOAD } from '../appliers/proxy/certificates.ts';
import type { DnsLookup } from '../clients/dns-lookup.ts';
import { readConfig } from './config.ts';
import { type EdgePathDeps, edgePathOf, siteHosts } from './edge-path.ts';
import { type NameDestinations, resolveNames } from './names.ts';
import { nodeLookup } from './node-lookup.ts';
import { checkPreviewPath, type PreviewPathDeps } from './preview-path.ts';
import { type CertificateEndpoint, readServedCertificate } from './served-certificate.ts';
import { measureArrival, type VisitTarget } from './visit.ts';

/** Milliseconds until a check without an answer counts as failed. All run at once; DNS queries have their own limit. */
const TIMEOUT_MS = 3_500;
const NO_ADDRESS = 'the address of the cluster’s gateway isn’t known';

interface HostReportDeps extends NameDestinations {
  readonly host: string;
  readonly hopSecret: string;
  readonly edgePublicUrl: string;
  /** Whether this host orders certificates for `tls: acme`. */
  readonly hasAuthority: boolean;
  /** The proxy's TLS socket, as seen from this host. `address` is `null` where it isn't known. */
  readonly proxy: { readonly address: string | null; readonly port: number };
  readonly lookup: DnsLookup;
  /** How many preview servers of a site run. */
  readonly previews: (manifest: LoadedManifest, signal: AbortSignal) => Promise<number>;
  /** Unset: this host can't ask the processing servers whether they reach their preview server. */
  readonly previewPath?: PreviewPathDeps;
  /** Unset: nothing is known of the zone of the edge hostnames. */
  readonly edgePath?: EdgePathDeps;
}

/** Reports what only this host can observe of a site. */
export type ReportSite = (manifest: LoadedManifest) => Promise<HostReport>;

/**
 * Reports on a site: DNS answers, certificates, the number of running preview servers, whether the processing servers
 * reach them, and the address with which a visitor arrives. Custom domains are visited at this host's own proxy,
 * whatever they resolve to: a client must not be able to make this host connect to an address of the client's choice.
 */
export function hostReporter(deps: HostReportDeps): ReportSite {
  const {
    host,
    hostAddresses,
    hopSecret,
    edgePublicUrl,
    hasAuthority,
    proxy,
    lookup,
    previewPath: path,
    edgePath: way,
  } = deps;
  return async (manifest) => {
    const site = describeSite(manifest, { edgePublicUrl, tlsPort: proxy.port });
    const edge = new URL(site.edge);
    const { origin, preview } = manifest.hostnames;
    const served = [origin, preview, ...provenHosts(manifest)];
    const { address, port } = proxy;
    const socket = address === null ? null : { address, port };
    const endpoints: CertificateEndpoint[] =
      socket === null ? [] : served.map((name) => ({ name, ...socket }));
    if (edge.protocol === 'https:') {
      endpoints.unshift({ name: edge.hostname, address: edge.hostname, port: Number(edge.port) || 443 });
    }
    const targets: VisitTarget[] = [
      { url: edge },
      ...(socket === null ? [] : site.customDomains.map((url) => ({ url: new URL(url), socket }))),
    ];
    const visit = {
      hostAddresses,
      edge: edge.hostname,
      hopSecret,
      lookup: nodeLookup(lookup),
      timeoutMs: TIMEOUT_MS,
    };
    const [names, certificates, arrivals, previews, previewPath, edgePath] = await Promise.all([
      resolveNames(manifest, deps, lookup),
      Promise.all(endpoints.map((one) => readServedCertificate(one, TIMEOUT_MS))),
      Promise.all(targets.map((way) => measureArrival(way, visit))),
      countPreviews(manifest, deps),
      path === undefined ? undefined : checkPreviewPath(manifest, path, TIMEOUT_MS),
      way === undefined ? undefined : edgePathOf(way, siteHosts(manifest), TIMEOUT_MS),
    ]);
    if (socket === null) {
      certificates.push(
        ...served.map((name) => ({ name, validTo: null, covers: false, problem: NO_ADDRESS })),
      );
      arrivals.push(
        ...site.customDomains.map((url) => ({
          name: new URL(url).hostname,
          from: [],
          as: null,
          problem: NO_ADDRESS,
        })),
      );
    }
    const config = readConfig(manifest.config);
    return {
      host,
      site,
      config,
      previews,
      ...(previewPath === undefined ? {} : { previewPath }),
      ...(edgePath === undefined ? {} : { edgePath }),
      names,
      certificates,
      certificateFix:
        manifest.tls.mode === 'uploaded'
          ? `${UPLOAD}, or see tagyard status`
          : manifest.tls.mode === 'acme'
            ? acmeRemedy(hasAuthority)
            : filesRemedy('put it into the host’s TLS_DIR and run tagyard apply', hasAuthority),
      arrivals,
    };
  };
}

async function countPreviews(
  manifest: LoadedManifest,
  { previews }: Pick<HostReportDeps, 'previews'>,
): Promise<HostReport['previews']> {
  try {
    return { count: await previews(manifest, AbortSignal.timeout(TIMEOUT_MS)), problem: null };
  } catch (error) {
    return { count: null, problem: error instanceof Error ? error.message : String(error) };
  }
}
