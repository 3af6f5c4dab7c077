import { TerminalError } from '../../base/errors.ts';
import { contentHash } from '../../base/ownership.ts';
import type { LoadedManifest } from '../../manifest/containers.ts';
import { provenHosts } from '../../manifest/schema.ts';
import type { Applier, Change, Resource, Scope, Traits } from '../contract.ts';
import { planResources } from '../plan.ts';
import type { Cluster, GatewayParts } from './cluster.ts';
import type { GatewayName } from './gateway-shared.ts';
import { notEnding } from './objects-applier.ts';
import { observeObjects } from './observation.ts';
import { type ObjectRef, ObjectSpec, resourceKey } from './state/object-spec.ts';

/** What is delivered to a cluster's gateways of a site. */
export const GATEWAY = { target: 'gateway' } as const satisfies Traits;

/** The Secret of a site, and the names in it that need a certificate. */
class DeliverySpec extends ObjectSpec {
  readonly names: readonly GatewayName[];

  constructor(object: ConstructorParameters<typeof ObjectSpec>[0], manifest: LoadedManifest) {
    super(object, { manifest, secrets: [], initialReplicas: null, refusal: null });
    const { origin, preview } = manifest.hostnames;
    const { mode: tls } = manifest.tls;
    this.names = [origin, preview, ...provenHosts(manifest)].map((host) => ({ host, tls }));
  }
}

type GatewayApplier = Applier<DeliverySpec, ObjectRef>;

/** Where no namespace of gateways is named, nothing is delivered. */
export function gatewayApplier(cluster: Cluster): GatewayApplier {
  return cluster.gateway === null ? NONE : deliveryApplier(cluster, cluster.gateway);
}

const NONE: GatewayApplier = {
  ...GATEWAY,
  desired: () => [],
  observe: async () => [],
  plan: planResources,
  async apply({ op, key }) {
    throw new TerminalError(`the change ${op} ${key} needs KUBERNETES_GATEWAY_NAMESPACE`);
  },
};

/**
 * Delivers sites to gateways: a Secret for each, and what is common to them. `apply` resolves when every gateway that takes
 * requests reports to serve it.
 */
function deliveryApplier(cluster: Cluster, gateway: GatewayParts): GatewayApplier {
  const { copies, writer, reports, shared } = gateway;
  const background = new AbortController();
  /** Secrets that are written, but that a gateway didn't report to serve. */
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
        target: GATEWAY.target,
        kinds: ['Secret'],
        problemOf({ key }) {
          const found = problems.get(key);
          // A renewed certificate, another hop secret, or a gateway that was away.
          return found === undefined ? null : { found, outdated: true };
        },
      },
      { desired, scope, signal },
    );
  }

  const planning = {
    ...GATEWAY,
    desired(manifest: LoadedManifest): Resource<DeliverySpec>[] {
      const object = gateway.render(manifest);
      const spec = new DeliverySpec(object, manifest);
      const { site, adopt, hostnames } = manifest;
      const summary = `deliver ${hostnames.origin} and ${hostnames.preview} to the gateways`;
      const key = resourceKey(spec.address);
      return [{ target: GATEWAY.target, site, key, hash: contentHash(object), summary, adopt, spec }];
    },
    plan: planResources,
  } as const;

  return {
    ...planning,

    async observe(desired, signal, scope) {
      shared.want(new Map(desired.map(({ site, spec }) => [site, spec.names])), scope?.sites ?? null);
      const observed = await observe(desired, signal, scope);
      if (scope === undefined) shared.startHousekeeping(background.signal);
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
        const faults = await shared.ensure(site, spec.names, signal);
        await notEnding({ ...cluster, copies }, spec, signal);
        unserved.add(key);
        await writer.apply(spec.reveal(), { site, hash, adopt }, signal);
        await reports.served(spec.address.name, signal);
        unserved.delete(key);
        // What has a certificate is served meanwhile.
        if (faults.length > 0) throw faults[0];
      } else if (observed !== undefined) {
        await writer.remove(observed.ref.address, observed.ref.uid, signal);
        unserved.delete(key);
      } else {
        throw new TerminalError(`the change ${op} ${key} has neither a desired nor an observed object`);
      }
    },

    events: (signal) => copies.events(signal),

    async close() {
      background.abort();
      await shared.ended();
    },
  };
}
