import { blockedHost, describeRule } from '../../edge/verification/block-lists.ts';
import { neededPolicy } from '../../edge/verification/content-security-policy.ts';
import { renderSandboxSnippet, renderSnippet } from '../../plugins/custom_loader/snippet.ts';
import { isActiveDomain } from '../../plugins/multi_domain/config.ts';
import { consentOfManifest, mayForbidVendor } from '../../sites/manifest/consent.ts';
import { isFirstPartyHost, isProven, isWithinDomain, provenHosts } from '../../sites/manifest/schema.ts';
import { shownClientKeys } from '../../sites/requests/container.ts';
import type { Settings } from '../context/context.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import type { Role } from '../lifecycle/roles.ts';
import { WATCHED } from '../lifecycle/status.ts';
import type { ContainerWithOperation } from '../records/containers.repository.ts';
import type { ContainerView } from './container-view.ts';
import { missingProofs, presentProof } from './proof.ts';
import { presentSameOrigin } from './same-origin.ts';

/** A container as the API answers it. `role` is the caller's role, if the answer is for one caller. */
export function presentContainer(
  row: ContainerWithOperation & { readonly role?: Role },
  settings: Pick<
    Settings,
    'edgePublicUrl' | 'customPublicUrl' | 'vendorUrl' | 'forwarderKey' | 'domainProof'
  >,
): ContainerView {
  const { manifest } = row;
  const { loaderToken, hostnames } = manifest;
  const consent = consentOfManifest(manifest);
  const domains = manifest.domains.map((entry, index) => ({
    domain: entry.domain,
    webTagId: entry.webTagId,
    containerToken: entry.token,
    active: isActiveDomain(index, manifest.features.multi_domain),
    snippet: renderSnippet({
      edgeUrl: prefixOf(entry, manifest) ?? loaderUrl(entry.domain, manifest, settings),
      loaderToken,
      webTagId: entry.webTagId,
      vendorUrl: settings.vendorUrl,
      waits: mayForbidVendor(consent),
    }),
    sandboxSnippet: renderSandboxSnippet({
      edgeUrl: loaderUrl(entry.domain, manifest, settings),
      containerToken: entry.token,
    }),
    contentSecurityPolicy: neededPolicy(
      pageBases(entry, manifest) ?? loaderUrl(entry.domain, manifest, settings),
      new URL(settings.vendorUrl).origin,
    ),
    sameOrigin: presentSameOrigin(entry, { manifest, role: row.role, settings }),
    proof: presentProof(entry.domain, row, settings),
  }));
  return {
    id: row.id,
    siteId: row.site_id,
    client: row.client_id,
    clientId: row.client_id,
    name: manifest.name,
    status: row.status,
    ...reasonOf(row, settings),
    suspended: manifest.suspend,
    serving: manifest.serving !== false,
    protected: manifest.protect,
    resources: manifest.resources,
    health: row.health,
    state: row.state,
    firstVisitAt: row.first_visit_at?.toISOString() ?? null,
    image: manifest.image,
    features: manifest.features,
    modules: manifest.modules,
    ...shownClientKeys(manifest),
    ...consent,
    tls: manifest.tls.mode,
    hostnames,
    loaderToken,
    snippet: domains[0]?.snippet ?? '',
    domains,
    customDomains: manifest.customDomains,
    warnings: blockedHostWarnings(manifest),
    serviceAccount: manifest.serviceAccount ?? null,
    revision: row.revision,
    operation: row.operation,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  };
}

/**
 * The base URLs of a domain's same-origin path, one for pages on the domain and one for pages on any host under it; for
 * the content security policy. `null`: there is no such path, or the domain isn't proven.
 */
function pageBases(entry: ManifestView['domains'][number], manifest: ManifestView): string[] | null {
  const path = prefixOf(entry, manifest);
  return path === null ? null : ['https://', 'https://*.'].map((start) => start + entry.domain + path);
}

/** The same-origin path at which the edge answers; `null`: there is none, or the domain isn't proven. */
function prefixOf(
  { domain, sameOrigin }: ManifestView['domains'][number],
  manifest: ManifestView,
): string | null {
  return isProven(manifest, domain) ? (sameOrigin?.path ?? null) : null;
}

/**
 * The address from which a domain's pages load the loader if they have no same-origin path: a custom domain that is
 * first-party to them, else the edge hostname. Browsers keep cookies of a first-party host longer, and fewer block
 * lists name it. Of several custom domains, the first one under the domain itself is preferred.
 */
export function loaderUrl(
  domain: string,
  manifest: Pick<ManifestView, 'hostnames' | 'customDomains' | 'unproven'>,
  { edgePublicUrl, customPublicUrl }: Pick<Settings, 'edgePublicUrl' | 'customPublicUrl'>,
): string {
  const own = provenHosts(manifest).filter((host) => isFirstPartyHost(host, [domain]));
  const custom = own.find((host) => isWithinDomain(host, domain)) ?? own[0];
  return custom === undefined
    ? edgePublicUrl.replace('{host}', manifest.hostnames.edge)
    : customPublicUrl.replace('{host}', custom);
}

/** The hosts whose names a common blocking list matches. */
export function blockedHostWarnings({
  hostnames,
  customDomains,
}: Pick<ManifestView, 'hostnames' | 'customDomains'>): ContainerView['warnings'] {
  return [hostnames.edge, ...customDomains].flatMap((host) => {
    const rule = blockedHost(host, { isOwn: host !== hostnames.edge });
    return rule === null ? [] : [{ host, detail: describeRule(rule) }];
  });
}

/**
 * The reason of the status. If it has none, the one that the host reports, or one that the manifest shows: a suspension
 * (even before the host has reported which changes wait), serving that is off, or a domain without a proof.
 */
function reasonOf(row: ContainerWithOperation, settings: Pick<Settings, 'domainProof'>) {
  const { status, status_reason, status_detail, host_reason, host_detail, manifest } = row;
  if (status_reason !== null || !WATCHED.includes(status)) {
    return { statusReason: status_reason, statusDetail: status_detail };
  }
  if (host_reason !== null) return { statusReason: host_reason, statusDetail: host_detail };
  if (status === 'deprovisioning') return { statusReason: null, statusDetail: status_detail };
  if (manifest.suspend) {
    const statusDetail = 'changes wait until the site is resumed; the host has not reported any yet';
    return { statusReason: 'suspended' as const, statusDetail };
  }
  if (manifest.serving === false) {
    const statusDetail =
      'the edge answers nothing of the site until it is resumed; its pages keep their fallback';
    return { statusReason: 'serving_off' as const, statusDetail };
  }
  const missing = missingProofs(row, settings);
  if (missing.length === 0) return { statusReason: null, statusDetail: status_detail };
  return { statusReason: 'domain_unproven' as const, statusDetail: missing.join('; ') };
}
