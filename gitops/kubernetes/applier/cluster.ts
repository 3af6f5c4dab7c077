import type { z } from 'zod';
import { type Clock, systemClock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import type { Identity } from '../../../base/ownership.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import type { PolicyToken } from '../../../sites/manifest/policy/policy-token.ts';
import { openKubernetes } from '../client/client.ts';
import type { KubernetesClient } from '../client/contract.ts';
import type { KubernetesObject, ObjectAddress } from '../client/kinds.ts';
import type { InstanceDocument } from '../delivery/documents.ts';
import { DELIVERY_LABEL } from '../delivery/secrets.ts';
import { ClientObjects } from './client-objects.ts';
import { FailedPreviews } from './failed-previews.ts';
import { certificateDelivery, instanceDelivery, policyDelivery, siteDelivery } from './gateway-objects.ts';
import { GatewayReports } from './gateway-reports.ts';
import { type CertificatePairs, SharedDeliveries } from './gateway-shared.ts';
import { clientObjects, footprintOf } from './objects/client.ts';
import type { ClusterSettings } from './objects/settings.ts';
import { siteObjects } from './objects/site.ts';
import { PodOutages } from './pod-outages.ts';
import { ROLLOUT_TIMES, type RolloutTimes } from './rollout.ts';
import type { kubernetesSettings } from './settings.ts';
import type { RenderSite } from './site-resources.ts';
import { Copies } from './state/copies.ts';
import { WantedSpecs } from './state/wanted-specs.ts';
import { Writer } from './writer.ts';

/** The sources of what is delivered to a cluster's gateways. */
export interface GatewaySource {
  readonly pairs: CertificatePairs;
  readonly policies: {
    /** The certificate of the authority that signs for the names of policy scripts: PEM. */
    readonly ca: string;
    readonly tokenOf: PolicyToken;
  };
  instance(): InstanceDocument;
  /** Reads again what the document of the instance is made from; never throws. */
  refresh(): Promise<void>;
}

export interface GatewayParts {
  readonly namespace: string;
  /** The Secrets and Leases of the gateway's namespace. */
  readonly copies: Copies;
  readonly writer: Writer;
  readonly reports: GatewayReports;
  readonly shared: SharedDeliveries;
  render(manifest: LoadedManifest): KubernetesObject;
  /** `null`: the site has no policy script, or its pods can't read one (KUBERNETES_POLICY_SERVICE isn't set). */
  renderPolicy(manifest: LoadedManifest): KubernetesObject | null;
}

/** What all targets of a cluster use. */
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
  /** What others have added to objects, as it was last logged. */
  readonly reported: Map<string, { readonly address: ObjectAddress; readonly fields: string }>;
  /** `null`: nothing is delivered to gateways. */
  readonly gateway: GatewayParts | null;
  /** `null`: preview servers run always. */
  readonly wanted: WantedSpecs;
  readonly failedPreviews: FailedPreviews | null;
  readonly podOutages: PodOutages;
  render: RenderSite;
  /** The current edition of a site's pods. */
  edition(site: string): string;
  close(): Promise<void>;
}

interface ClusterServices extends Pick<ClusterSettings, 'identity' | 'originPort' | 'edition'> {
  readonly log: Log;
  /**
   * The ordinal of the revision that is in force: a later revision has a greater one. Objects carry it, and a revision
   * with a smaller one isn't applied to them. `null`: unknown.
   */
  ordinal(): Promise<number | null>;
  readonly times?: RolloutTimes;
  /** For how many milliseconds a read waits for copies that can't follow the API server. */
  readonly waitMs?: number;
  /** `null`: nothing is delivered to gateways. */
  readonly gateway: GatewaySource | null;
  /** For the times of checks and of gateways' Leases. Default: the system's. */
  readonly clock?: Clock;
}

/** Opens the cluster of the settings and begins to read it. Throws `TerminalError` if the settings can't be used. */
export async function openCluster(
  settings: z.output<typeof kubernetesSettings>,
  {
    identity,
    log,
    ordinal,
    times = ROLLOUT_TIMES,
    waitMs,
    gateway: source,
    clock = systemClock,
    ...services
  }: ClusterServices,
): Promise<Cluster> {
  const access = { kubeconfig: settings.KUBECONFIG, context: settings.KUBERNETES_CONTEXT };
  const client = await openKubernetes(access);
  const namespace = settings.KUBERNETES_NAMESPACE ?? null;
  const rendering: ClusterSettings = {
    ...services,
    identity,
    namespace,
    admitCidrs: settings.KUBERNETES_ADMIT_CIDRS,
    gatewayNamespace: settings.KUBERNETES_GATEWAY_NAMESPACE ?? null,
    policyScripts: policyScripts(settings, source),
  };
  const copies = new Copies({
    client,
    identity,
    namespace,
    log,
    ...(waitMs === undefined ? {} : { waitMs }),
  });
  const writer = new Writer({ client, copies, identity, ordinal, log });
  const clients = new ClientObjects({
    client,
    copies,
    writer,
    identity,
    log,
    render: (name, sites) => clientObjects(name, rendering, footprintOf(sites)),
  });
  const gatewayNamespace = settings.KUBERNETES_GATEWAY_NAMESPACE;
  const gateway =
    source === null || gatewayNamespace === undefined
      ? null
      : openGateway({
          ...source,
          policyToken: rendering.policyScripts?.tokenOf,
          place: { identity, namespace, gatewayNamespace },
          ...{ client, ordinal, log, clock, waitMs },
        });
  const wanted = new WantedSpecs();
  const failedPreviews =
    gateway === null
      ? null
      : new FailedPreviews({ client, identity, copies, wanted, reports: gateway.copies });
  const podOutages = new PodOutages({ client, copies, wanted, identity, log, clock });
  return {
    gateway,
    wanted,
    failedPreviews,
    podOutages,
    client,
    copies,
    writer,
    clients,
    identity,
    log,
    namespace,
    times,
    reported: new Map(),
    render: renderedOnce(rendering),
    edition: (site) => services.edition(site),
    async close() {
      failedPreviews?.close();
      podOutages.close();
      await clients.ended();
      await gateway?.shared.ended();
      await Promise.all([copies.close(), gateway?.copies.close()]);
      await client.close();
    },
  };
}

/** Renders a site's objects once per manifest and edition, for the two targets `objects` and `workloads`. */
function renderedOnce(settings: ClusterSettings): RenderSite {
  const known = new WeakMap<LoadedManifest, { edition: string; objects: readonly KubernetesObject[] }>();
  return (manifest) => {
    const edition = settings.edition(manifest.site);
    const before = known.get(manifest);
    if (before?.edition === edition) return before.objects;
    const objects = siteObjects(manifest, settings);
    known.set(manifest, { edition, objects });
    return objects;
  };
}

/** Without the gateways' own namespace, nothing serves policy scripts. */
function policyScripts(
  settings: z.output<typeof kubernetesSettings>,
  source: GatewaySource | null,
): ClusterSettings['policyScripts'] {
  const { KUBERNETES_GATEWAY_NAMESPACE: served, KUBERNETES_POLICY_SERVICE: named } = settings;
  if (source === null || served === undefined || named === undefined) return undefined;
  const [namespace, name] = named.split('/');
  return {
    service: `${name}.${namespace}.svc.${settings.KUBERNETES_CLUSTER_DOMAIN}`,
    ...source.policies,
  };
}

interface GatewayDeps extends GatewaySource, Pick<ClusterServices, 'ordinal' | 'log'> {
  readonly clock: Clock;
  readonly waitMs: number | undefined;
  /** Unset: pods can't read policy scripts (KUBERNETES_POLICY_SERVICE isn't set). */
  readonly policyToken: PolicyToken | undefined;
  readonly client: KubernetesClient;
  readonly place: Parameters<typeof instanceDelivery>[1];
}

function openGateway(deps: GatewayDeps): GatewayParts {
  const { place, client, ordinal, log, clock, waitMs, policyToken, ...source } = deps;
  const { identity, gatewayNamespace: namespace } = place;
  // The labels name no host: gateways also report Secrets of other hosts, such as certificates that those renew.
  const labels = `tagyard/instance=${identity.instance},${DELIVERY_LABEL}`;
  const copies = new Copies({
    ...{ client, identity, namespace, log, ...(waitMs === undefined ? {} : { waitMs }) },
    selection: { kinds: ['Secret', 'Lease'], labels },
  });
  const writer = new Writer({ client, copies, identity, ordinal, log });
  const reports = new GatewayReports({ copies, namespace, now: () => clock.now() });
  return {
    namespace,
    copies,
    writer,
    reports,
    shared: new SharedDeliveries({
      ...source,
      ...{ client, copies, writer, reports, identity, log },
      renderInstance: (document) => instanceDelivery(document, place),
      renderCertificate: (pair) => certificateDelivery(pair, place),
    }),
    render: (manifest) => siteDelivery(manifest, place),
    renderPolicy: (manifest) =>
      policyToken === undefined ? null : policyDelivery(manifest, policyToken(manifest), place),
  };
}
