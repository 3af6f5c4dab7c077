import type { Registration } from '../../appliers/registration.ts';
import type { Cluster } from './cluster.ts';
import { GATEWAY, gatewayApplier, POLICY_DELIVERY, policyDeliveryApplier } from './gateway-applier.ts';
import { objectsApplier } from './objects-applier.ts';
import { kubernetesSettings } from './settings.ts';
import { OBJECTS, WORKLOADS } from './site-resources.ts';
import { workloadsApplier } from './workloads-applier.ts';

interface Services {
  /** All targets use one (`openCluster`). */
  readonly kubernetes: Cluster;
}

/** What the pods of a site need in a cluster: Secret, Services, policies, budget and autoscaler. */
export const objects: Registration<typeof kubernetesSettings, Services> = {
  ...OBJECTS,
  settings: kubernetesSettings,
  create: (_settings, { kubernetes }) => objectsApplier(kubernetes),
};

/** The Deployments of a site in a cluster. */
export const workloads: Registration<typeof kubernetesSettings, Services> = {
  ...WORKLOADS,
  settings: kubernetesSettings,
  create: (_settings, { kubernetes }) => workloadsApplier(kubernetes),
};

/** What is delivered to a cluster's gateways, so that they serve a site. */
export const gateway: Registration<typeof kubernetesSettings, Services> = {
  ...GATEWAY,
  settings: kubernetesSettings,
  create: (_settings, { kubernetes }) => gatewayApplier(kubernetes),
};

/** What is delivered to a cluster's gateways, so that a site's pods read its policy script when they start. */
export const policyDeliveries: Registration<typeof kubernetesSettings, Services> = {
  ...POLICY_DELIVERY,
  settings: kubernetesSettings,
  create: (_settings, { kubernetes }) => policyDeliveryApplier(kubernetes),
};
