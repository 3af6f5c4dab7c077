import { renderSnippet } from '../../plugins/custom_loader/snippet.ts';
import { isActiveDomain } from '../../plugins/multi_domain/config.ts';
import type { Settings } from '../context/context.ts';
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
    statusReason: row.status_reason,
    statusDetail: row.status_detail,
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
