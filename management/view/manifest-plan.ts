import type { Manifest } from '../../sites/manifest/schema.ts';
import { planOf, type ValueChange } from './plan.ts';

/** What distinguishes two manifests of a site, in the API's terms. `null`: there is none. Secrets are never shown. */
export function manifestChanges(before: Manifest | null, after: Manifest | null): ValueChange[] {
  return planOf(before && inTheApisTerms(before), after && inTheApisTerms(after)).changes;
}

function inTheApisTerms({
  version: _,
  site: siteId,
  client,
  container: id,
  suspend: suspended,
  serving = true,
  protect,
  containerConfig: containerConfigB64,
  domains,
  ...rest
}: Manifest): object {
  return {
    id,
    siteId,
    client,
    ...rest,
    suspended,
    serving,
    protected: protect,
    containerConfigB64,
    domains: domains.map(({ token: containerToken, ...domain }) => ({ ...domain, containerToken })),
  };
}
