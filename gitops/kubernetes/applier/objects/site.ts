import { TerminalError } from '../../../../base/errors.ts';
import type { LoadedManifest } from '../../../../sites/manifest/containers.ts';
import type { KubernetesObject } from '../../client/kinds.ts';
import { availability } from './availability.ts';
import { deployments } from './deployments.ts';
import { networkPolicies } from './network-policies.ts';
import { siteSecret } from './secret.ts';
import { services } from './services.ts';
import type { ClusterSettings } from './settings.ts';

/**
 * The objects of a site, pure, without their ownership marks: the Deployments last, after all that they need. Throws a
 * `TerminalError` if a cluster can’t run the site: its objects that exist stay as they are.
 */
export function siteObjects(
  manifest: LoadedManifest,
  settings: ClusterSettings,
): readonly KubernetesObject[] {
  const refusal = clusterRefusal(manifest, settings);
  if (refusal !== null) throw new TerminalError(refusal, { isOfSite: true });
  return [
    ...networkPolicies(manifest, settings),
    siteSecret(manifest, settings),
    ...services(manifest, settings),
    ...availability(manifest, settings),
    ...deployments(manifest, settings),
  ];
}

/** Why a cluster can't run the site, and what to do; `null`: it can. */
function clusterRefusal(
  { policy }: Pick<LoadedManifest, 'policy'>,
  { policyScripts }: Pick<ClusterSettings, 'policyScripts'>,
): string | null {
  if (policy === undefined || policyScripts !== undefined) return null;
  return 'the site has a policy script, which nothing serves in this cluster: a tag server reads it only over https. Set KUBERNETES_GATEWAY_NAMESPACE and KUBERNETES_POLICY_SERVICE (the chart sets both with its gateway), remove the policy script, or move the site to a host with Docker';
}
