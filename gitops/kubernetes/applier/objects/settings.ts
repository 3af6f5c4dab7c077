import type { Identity } from '../../../../base/ownership.ts';
import type { PolicyToken } from '../../../../sites/manifest/policy/policy-token.ts';

/** Where a cluster's gateways serve policy scripts over TLS. */
interface PolicyScripts {
  /** The full DNS name of their Service. */
  readonly service: string;
  /** The certificate of the authority that tag servers must trust for the service: PEM. */
  readonly ca: string;
  readonly tokenOf: PolicyToken;
}

/** What the objects depend on besides the manifest. */
export interface ClusterSettings {
  readonly identity: Identity;
  /** One namespace for all clients, not made by Tagyard; `null`: one for each client. */
  readonly namespace: string | null;
  /** The ranges from which connections to the sites' ports are let in if there is no gateway. */
  readonly admitCidrs: readonly string[];
  /** The gateway's namespace, from which connections are let in; `null`: there is no gateway. */
  readonly gatewayNamespace: string | null;
  /** The port on which TLS is answered for the sites' public names. */
  readonly originPort: number;
  /** The current edition of a site's pods (`Recycling`): a new edition replaces them. */
  edition(site: string): string;
  /** How tag servers read their policy scripts. Unset: nothing serves them, and a site that has one is refused. */
  readonly policyScripts?: PolicyScripts | undefined;
}
