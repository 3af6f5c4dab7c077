import type { Identity } from '../../../base/ownership.ts';
import type { LoadedManifest } from '../../../manifest/containers.ts';

/** What the objects depend on besides the manifest. */
export interface ClusterSettings {
  readonly identity: Identity;
  /** One namespace for all clients, which others have made; `null`: one for each client. */
  readonly namespace: string | null;
  /** From these ranges connections to the sites' ports are let in, while there is no gateway. */
  readonly admitCidrs: readonly string[];
  /** The gateway's namespace, from which connections are let in; `null`: there is no gateway. */
  readonly gatewayNamespace: string | null;
  /** The port on which TLS is answered for the sites' public names. */
  readonly originPort: number;
  /** The current edition of a site's pods (`Recycling`): another one rolls them. */
  edition(site: string): string;
  /**
   * The address under which the site's policy script is served over TLS, without its path. Unset: nothing serves it, and
   * a site that has one is refused.
   */
  policyUrlOf?(manifest: LoadedManifest): string;
}
