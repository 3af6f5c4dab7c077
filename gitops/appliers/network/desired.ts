import { contentHash } from '../../../base/ownership.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import type { Resource, Traits } from '../contract.ts';

export const NETWORK = { target: 'network', mayOutliveSite: true } as const satisfies Traits;

/** Increase this if a release creates networks differently. Existing networks are then replaced. */
const RECIPE = 1;

/** A site's own network. Its subnet is assigned at creation and isn't part of the desired state. */
export function desiredNetworks({ site, adopt }: LoadedManifest): Resource<null>[] {
  const summary = `isolate the containers of ${site} in a network of their own`;
  return [
    {
      target: NETWORK.target,
      site,
      key: site,
      hash: contentHash({ recipe: RECIPE, site }),
      summary,
      adopt,
      spec: null,
    },
  ];
}
