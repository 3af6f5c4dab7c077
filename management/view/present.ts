import { renderSnippet } from '../../plugins/custom_loader/snippet.ts';
import { isActiveDomain } from '../../plugins/multi_domain/config.ts';
import type { Settings } from '../context/context.ts';
import { LIVE } from '../lifecycle/status.ts';
import type { ContainerWithOperation } from '../records/containers.repository.ts';
import type { ContainerView } from './container-view.ts';

/** A container as the API answers it. */
export function presentContainer(
  row: ContainerWithOperation,
  { edgePublicUrl, vendorUrl }: Pick<Settings, 'edgePublicUrl' | 'vendorUrl'>,
): ContainerView {
  const { manifest } = row;
  const { loaderToken, hostnames } = manifest;
  const edgeUrl = edgePublicUrl.replace('{host}', hostnames.edge);
  const domains = manifest.domains.map(({ domain, webTagId, token }, index) => ({
    domain,
    webTagId,
    containerToken: token,
    active: isActiveDomain(index, manifest.features.multi_domain),
    snippet: renderSnippet({ edgeUrl, loaderToken, webTagId, vendorUrl }),
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
    features: manifest.features,
    modules: manifest.modules,
    hostnames,
    loaderToken,
    snippet: domains[0]?.snippet ?? '',
    domains,
    customDomains: manifest.customDomains,
    revision: row.revision,
    operation: row.operation,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  };
}

/** A suspension shows at once, before the host has reported what waits. */
function reasonOf({ status, status_reason, status_detail, manifest }: ContainerWithOperation) {
  if (!manifest.suspend || status_reason !== null || !LIVE.includes(status)) {
    return { statusReason: status_reason, statusDetail: status_detail };
  }
  const statusDetail = 'changes wait until the site is resumed; the host has not reported any yet';
  return { statusReason: 'suspended' as const, statusDetail };
}
