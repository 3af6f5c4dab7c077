import type { Log } from '../../../base/log.ts';
import type { Identity } from '../../../base/ownership.ts';
import type { CloudflareClient } from '../../clients/cloudflare.ts';
import type { Registration } from '../registration.ts';
import { KV, ROUTE } from './desired.ts';
import { kvApplier } from './kv.ts';
import { routeApplier } from './route.ts';
import { edgeSettings } from './settings.ts';
import type { EdgeStore } from './store.ts';

interface Services {
  readonly identity: Identity;
  readonly log: Log;
  readonly cloudflare: { readonly client: CloudflareClient; readonly zoneId: string };
  readonly edgeDomain: string;
  readonly edgeStore: EdgeStore;
  readonly containers: { readonly originPort: number };
}

/** The documents that the edge reads. */
export const kv: Registration<typeof edgeSettings, Services> = {
  ...KV,
  settings: edgeSettings,
  create: (_settings, { identity, cloudflare, edgeStore, containers: { originPort } }) =>
    kvApplier({ client: cloudflare.client, store: edgeStore, identity, settings: { originPort } }),
};

/** Routes from edge hostnames to the worker: one for each site, or one for all names under the edge's domain. */
export const route: Registration<typeof edgeSettings, Services> = {
  ...ROUTE,
  settings: edgeSettings,
  create: (
    { EDGE_ROUTE_MODE, EDGE_SCRIPT_NAME, WORKER_ROUTE_QUOTA },
    { identity, log, cloudflare, ...services },
  ) =>
    routeApplier({
      ...cloudflare,
      store: services.edgeStore,
      identity,
      scriptName: EDGE_SCRIPT_NAME,
      domain: services.edgeDomain,
      mode: EDGE_ROUTE_MODE,
      limit: WORKER_ROUTE_QUOTA,
      warn: (message) => log.warn({}, message),
    }),
};
