import { blockedHost, describeRule } from '../../edge/verification/block-lists.ts';
import { neededPolicy } from '../../edge/verification/content-security-policy.ts';
import { consentOfManifest, mayForbidVendor } from '../../gitops/manifest/consent.ts';
import { isFirstPartyHost, isWithinDomain } from '../../gitops/manifest/schema.ts';
import { renderSnippet } from '../../plugins/custom_loader/snippet.ts';
import { isActiveDomain } from '../../plugins/multi_domain/config.ts';
import type { Settings } from '../context/context.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import { LIVE } from '../lifecycle/status.ts';
import type { ContainerWithOperation } from '../records/containers.repository.ts';
import type { ContainerView } from './container-view.ts';
import { presentSameOrigin } from './same-origin.ts';

/** A container as the API answers it. `role` is the caller's, where the answer is for one caller. */
export function presentContainer(
  row: ContainerWithOperation & { readonly role?: string },
  settings: Pick<Settings, 'edgePublicUrl' | 'customPublicUrl' | 'vendorUrl' | 'forwarderKey'>,
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
      edgeUrl: entry.sameOrigin?.path ?? loaderUrl(entry.domain, manifest, settings),
      loaderToken,
      webTagId: entry.webTagId,
      vendorUrl: settings.vendorUrl,
      waits: mayForbidVendor(consent),
    }),
    contentSecurityPolicy: neededPolicy(
      pageBases(entry) ?? loaderUrl(entry.domain, manifest, settings),
      new URL(settings.vendorUrl).origin,
    ),
    sameOrigin: presentSameOrigin(entry, { manifest, role: row.role, settings }),
  }));
  return {
    id: row.id,
    siteId: row.site_id,
    clientId: row.client_id,
    name: manifest.name,
    status: row.status,
    ...reasonOf(row),
    suspended: manifest.suspend,
    health: row.health,
    image: manifest.image,
    features: manifest.features,
    modules: manifest.modules,
    ...consent,
    hostnames,
    loaderToken,
    snippet: domains[0]?.snippet ?? '',
    domains,
    customDomains: manifest.customDomains,
    warnings: warningsOf(manifest),
    serviceAccount: manifest.serviceAccount ?? null,
    revision: row.revision,
    operation: row.operation,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  };
}

/** Where the pages of a domain have its same-origin path: on the domain and on every host under it. */
function pageBases({ domain, sameOrigin }: ManifestView['domains'][number]): string[] | null {
  if (sameOrigin === undefined) return null;
  return ['https://', 'https://*.'].map((start) => start + domain + sameOrigin.path);
}

/**
 * The address from which a domain's pages load without a same-origin path: a custom domain that is first-party to them,
 * else the edge hostname. Browsers keep cookies of a first-party host longer, and fewer block lists name it. Of several
 * custom domains, the first one under the domain itself is preferred.
 */
function loaderUrl(
  domain: string,
  { hostnames, customDomains }: Pick<ManifestView, 'hostnames' | 'customDomains'>,
  { edgePublicUrl, customPublicUrl }: Pick<Settings, 'edgePublicUrl' | 'customPublicUrl'>,
): string {
  const own = customDomains.filter((host) => isFirstPartyHost(host, [domain]));
  const custom = own.find((host) => isWithinDomain(host, domain)) ?? own[0];
  return custom === undefined
    ? edgePublicUrl.replace('{host}', hostnames.edge)
    : customPublicUrl.replace('{host}', custom);
}

/** The hosts whose names a common blocking list matches. */
function warningsOf({
  hostnames,
  customDomains,
}: Pick<ManifestView, 'hostnames' | 'customDomains'>): ContainerView['warnings'] {
  return [hostnames.edge, ...customDomains].flatMap((host) => {
    const rule = blockedHost(host, { isOwn: host !== hostnames.edge });
    return rule === null ? [] : [{ host, detail: describeRule(rule) }];
  });
}

/** Shows a suspension at once, even before the host has reported which changes wait. */
function reasonOf({ status, status_reason, status_detail, manifest }: ContainerWithOperation) {
  if (!manifest.suspend || status_reason !== null || !LIVE.includes(status)) {
    return { statusReason: status_reason, statusDetail: status_detail };
  }
  const statusDetail = 'changes wait until the site is resumed; the host has not reported any yet';
  return { statusReason: 'suspended' as const, statusDetail };
}
