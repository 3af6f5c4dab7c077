import type { z } from 'zod';
import type { Log } from '../../base/log.ts';
import type { Identity } from '../../base/ownership.ts';
import { openKubernetes } from '../../clients/kubernetes/client.ts';
import type { KubernetesClient } from '../../clients/kubernetes/contract.ts';
import { ClientObjects } from './client-objects.ts';
import { clientObjects, footprintOf } from './objects/client.ts';
import type { ClusterSettings } from './objects/settings.ts';
import { siteObjects } from './objects/site.ts';
import { ROLLOUT_TIMES, type RolloutTimes } from './rollout.ts';
import type { kubernetesSettings } from './settings.ts';
import type { RenderSite } from './site-resources.ts';
import { Copies } from './state/copies.ts';
import { Writer } from './writer.ts';

/** What both targets of a cluster use. */
export interface Cluster {
  readonly client: KubernetesClient;
  readonly copies: Copies;
  readonly writer: Writer;
  readonly clients: ClientObjects;
  readonly identity: Identity;
  readonly log: Log;
  /** The namespace of all objects; `null`: each client has its own. */
  readonly namespace: string | null;
  readonly times: RolloutTimes;
  /** What others have added to each object, as it was last in the log. */
  readonly reported: Map<string, string>;
  render: RenderSite;
  /** The current edition of a site's pods. */
  edition(site: string): string;
  close(): Promise<void>;
}

interface ClusterServices
  extends Pick<ClusterSettings, 'identity' | 'originPort' | 'edition' | 'policyUrlOf'> {
  readonly log: Log;
  /**
   * The ordinal of the revision that is in force: a later revision has a greater one. Objects carry it, and an older one
   * isn't applied to them. `null`: unknown.
   */
  ordinal(): Promise<number | null>;
  /** Asked before each write; false: another replica may lead. Default: always true. */
  readonly mayWrite?: (() => boolean) | undefined;
  readonly times?: RolloutTimes;
  /** Milliseconds that a read waits for copies that don't follow. */
  readonly waitMs?: number;
}

/** Opens the cluster of the settings and begins to read it. Throws `TerminalError` where they can't be used. */
export async function openCluster(
  settings: z.output<typeof kubernetesSettings>,
  {
    identity,
    log,
    ordinal,
    mayWrite = () => true,
    times = ROLLOUT_TIMES,
    waitMs,
    ...services
  }: ClusterServices,
): Promise<Cluster> {
  const access = { kubeconfig: settings.KUBECONFIG, context: settings.KUBERNETES_CONTEXT };
  const client = await openKubernetes(access, { mayWrite });
  const namespace = settings.KUBERNETES_NAMESPACE ?? null;
  const rendering: ClusterSettings = {
    ...services,
    identity,
    namespace,
    admitCidrs: settings.KUBERNETES_ADMIT_CIDRS,
    gatewayNamespace: settings.KUBERNETES_GATEWAY_NAMESPACE ?? null,
  };
  const copies = new Copies({ client, identity, namespace, ...(waitMs === undefined ? {} : { waitMs }) });
  const writer = new Writer({ client, copies, identity, ordinal, log });
  const clients = new ClientObjects({
    client,
    copies,
    writer,
    identity,
    log,
    render: (name, sites) => clientObjects(name, rendering, footprintOf(sites)),
  });
  return {
    client,
    copies,
    writer,
    clients,
    identity,
    log,
    namespace,
    times,
    reported: new Map(),
    render: (manifest) => siteObjects(manifest, rendering),
    edition: (site) => services.edition(site),
    async close() {
      await clients.ended();
      await copies.close();
      await client.close();
    },
  };
}
