import { TerminalError } from '../../../base/errors.ts';
import { contentHash } from '../../../base/ownership.ts';
import { tlsOf } from '../../../sites/manifest/certificate-check.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { provenHosts } from '../../../sites/manifest/schema.ts';
import type { Applier, Change, Resource, Scope, Traits } from '../../appliers/contract.ts';
import { planResources } from '../../appliers/plan.ts';
import type { KubernetesObject } from '../client/kinds.ts';
import type { Cluster, GatewayParts } from './cluster.ts';
import { POLICY_PREFIX, SITE_PREFIX } from './gateway-objects.ts';
import type { GatewayName } from './gateway-shared.ts';
import { policyName } from './objects/names.ts';
import { notEnding } from './objects-applier.ts';
import { observeObjects } from './observation.ts';
import { type ObjectRef, ObjectSpec, resourceKey } from './state/object-spec.ts';

/** A site's public names, which a cluster's gateways serve. */
export const GATEWAY = { target: 'gateway' } as const satisfies Traits;
/** A site's policy script, which gateways serve to its pods; it is delivered before these start. */
export const POLICY_DELIVERY = { target: 'policy' } as const satisfies Traits;

/** One of the two kinds of Secrets that sites have: of public names, or of policy scripts. */
interface DeliveryKind {
  readonly traits: Traits;
  /** How the names of these Secrets begin. */
  readonly prefix: string;
  /** True for one kind: it also keeps what all sites have in common up to date, and emits the events of changes. */
  readonly isMain: boolean;
}

/** What is delivered of a site. */
interface Delivery {
  readonly summary: string;
  /** `null`: the site has none. */
  readonly object: KubernetesObject | null;
  /** The names in it that need a certificate. */
  readonly names: readonly GatewayName[];
}

/** The Secret of a site, and the names in it that need a certificate. */
class DeliverySpec extends ObjectSpec {
  readonly names: readonly GatewayName[];

  constructor(object: KubernetesObject, manifest: LoadedManifest, names: readonly GatewayName[]) {
    super(object, { manifest, secrets: [], initialReplicas: null, refusal: null });
    this.names = names;
  }
}

type GatewayApplier = Applier<DeliverySpec, ObjectRef>;

/** Delivers the public names of sites. Without KUBERNETES_GATEWAY_NAMESPACE, nothing is delivered. */
export function gatewayApplier({ gateway, ...cluster }: Cluster): GatewayApplier {
  return gateway === null
    ? nothing(GATEWAY)
    : deliveryApplier(
        { ...cluster, gateway },
        { traits: GATEWAY, prefix: SITE_PREFIX, isMain: true },
        (manifest) => {
          const { origin, preview } = manifest.hostnames;
          return {
            object: gateway.render(manifest),
            names: [origin, preview, ...provenHosts(manifest)].map((host) => ({
              host,
              tls: tlsOf(manifest.tls, host),
            })),
            summary: `deliver ${origin} and ${preview} to the gateways`,
          };
        },
      );
}

/** Delivers the policy scripts of sites; nothing where no namespace of gateways is named. */
export function policyDeliveryApplier({ gateway, ...cluster }: Cluster): GatewayApplier {
  return gateway === null
    ? nothing(POLICY_DELIVERY)
    : deliveryApplier(
        { ...cluster, gateway },
        { traits: POLICY_DELIVERY, prefix: POLICY_PREFIX, isMain: false },
        (manifest) => {
          return {
            object: gateway.renderPolicy(manifest),
            names: [{ host: policyName(manifest.site), tls: 'inside' }],
            summary: `deliver the policy script ${manifest.policy?.hash ?? ''} to the gateways`,
          };
        },
      );
}

const nothing = (traits: Traits): GatewayApplier => ({
  ...traits,
  desired: () => [],
  observe: async () => [],
  plan: planResources,
  async apply({ op, key }) {
    throw new TerminalError(`the change ${op} ${key} needs KUBERNETES_GATEWAY_NAMESPACE`);
  },
});

/**
 * Delivers a Secret for each site to gateways, and what all sites have in common. `apply` resolves when every gateway
 * that takes requests reports that it serves the Secret.
 */
function deliveryApplier(
  cluster: Cluster & { readonly gateway: GatewayParts },
  { traits, prefix, isMain }: DeliveryKind,
  deliveryOf: (manifest: LoadedManifest) => Delivery,
): GatewayApplier {
  const { gateway } = cluster;
  const { copies, writer, reports, shared } = gateway;
  const background = new AbortController();
  /** Keys of Secrets that are written, but that some gateways haven't reported to serve. */
  const unserved = new Set<string>();

  async function observe(
    desired: readonly Resource<DeliverySpec>[],
    signal: AbortSignal,
    scope: Scope | undefined,
  ) {
    await copies.ready(signal);
    const problems = new Map<string, string>();
    const check = async ({ key, spec }: Resource<DeliverySpec>) => {
      const missing = unserved.has(key)
        ? 'not served by every gateway yet'
        : await shared.missing(spec.names);
      if (missing !== null) problems.set(key, missing);
    };
    await Promise.all(desired.map(check));
    return await observeObjects(
      { ...cluster, copies, namespace: gateway.namespace },
      {
        target: traits.target,
        kinds: ['Secret'],
        isOf: ({ metadata }) => metadata.name.startsWith(prefix),
        problemOf({ key }) {
          const found = problems.get(key);
          // No drift: the cause is a renewed certificate, another hop secret, or a gateway that was away.
          return found === undefined ? null : { found, outdated: true };
        },
      },
      { desired, scope, signal },
    );
  }

  const planning = {
    ...traits,
    desired(manifest: LoadedManifest): Resource<DeliverySpec>[] {
      const { object, names, summary } = deliveryOf(manifest);
      if (object === null) return [];
      const spec = new DeliverySpec(object, manifest, names);
      const { site, adopt } = manifest;
      const key = resourceKey(spec.address);
      return [{ target: traits.target, site, key, hash: contentHash(object), summary, adopt, spec }];
    },
    plan: planResources,
  } as const;

  return {
    ...planning,

    async observe(desired, signal, scope) {
      shared.want(
        new Map(desired.map(({ spec }) => [spec.address.name, spec.names])),
        (secret) => secret.startsWith(prefix) && (scope?.sites.has(secret.slice(prefix.length)) ?? true),
      );
      const observed = await observe(desired, signal, scope);
      if (isMain && scope === undefined) shared.startHousekeeping(background.signal);
      return observed;
    },

    preview: () => ({
      ...planning,
      observe,
      async apply() {
        throw new TerminalError('a preview applies nothing');
      },
    }),

    async apply({ desired, observed, op, key, site }: Change<DeliverySpec, ObjectRef>, signal) {
      if (desired !== undefined) {
        const { spec, hash, adopt } = desired;
        const faults = await shared.ensure(spec.address.name, spec.names, signal);
        await notEnding({ ...cluster, copies }, spec, signal);
        unserved.add(key);
        await writer.apply(spec.reveal(), { site, hash, adopt }, signal);
        await reports.served(spec.address.name, signal);
        unserved.delete(key);
        // The names that have a certificate are served meanwhile.
        if (faults.length > 0) throw faults[0];
      } else if (observed !== undefined) {
        await writer.remove(observed.ref.address, observed.ref.uid, signal);
        unserved.delete(key);
      } else {
        throw new TerminalError(`the change ${op} ${key} has neither a desired nor an observed object`);
      }
    },

    ...(isMain ? { events: (signal: AbortSignal) => copies.events(signal) } : {}),

    async close() {
      background.abort();
      await shared.ended();
    },
  };
}
