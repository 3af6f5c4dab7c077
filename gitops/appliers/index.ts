import type { z } from 'zod';
import { gateway, objects, policyDeliveries, workloads } from '../kubernetes/applier/index.ts';
import { containers } from './containers/index.ts';
import { dns } from './dns/index.ts';
import { kv, route } from './edge/index.ts';
import { network } from './network/index.ts';
import { policyScripts, proxy } from './proxy/index.ts';

/** The appliers of a machine. A site is brought up in this order and removed in the reverse order. */
export const MACHINE_APPLIERS = [network, policyScripts, containers, proxy, kv, route, dns] as const;

/** The appliers of a Kubernetes cluster, likewise. */
export const CLUSTER_APPLIERS = [objects, policyDeliveries, workloads, gateway, kv, route, dns] as const;

type Intersection<Union> = (Union extends unknown ? (one: Union) => void : never) extends (
  all: infer All,
) => void
  ? All
  : never;

/** The settings of all appliers of a machine, as one object. */
export type MachineApplierSettings = Intersection<z.output<(typeof MACHINE_APPLIERS)[number]['settings']>>;
/** The settings of all appliers of a cluster, as one object. */
export type ClusterApplierSettings = Intersection<z.output<(typeof CLUSTER_APPLIERS)[number]['settings']>>;
