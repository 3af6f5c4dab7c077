import { QuotaReachedError, RetryableError } from '../../../base/errors.ts';
import type { CloudflareClient } from '../../clients/cloudflare.ts';
import { CloudflareRefusal } from '../../clients/cloudflare-errors.ts';
import type { RouteSpec } from './desired.ts';

export interface RouteChange {
  readonly desired?: RouteSpec | undefined;
  /** The id of the route to overwrite or, without `desired`, to delete. */
  readonly before?: string | undefined;
}

interface RoutesOfZone {
  readonly client: CloudflareClient;
  readonly zoneId: string;
  /** True where the zone, when last observed, had as many routes as it may have. */
  readonly isFull: () => boolean;
}

/** Creates, updates or deletes one route. A route that is already as desired counts as success. */
export async function applyRoute(
  { client, zoneId, isFull }: RoutesOfZone,
  { desired, before }: RouteChange,
  signal: AbortSignal,
): Promise<void> {
  try {
    if (desired === undefined) {
      if (before !== undefined) await client.deleteRoute(zoneId, before, signal);
    } else if (before === undefined) {
      await client.createRoute(zoneId, desired, signal);
    } else {
      await client.updateRoute(zoneId, before, desired, signal);
    }
  } catch (error) {
    if (!(error instanceof CloudflareRefusal)) throw error;
    const { meaning } = error;
    if (meaning === 'absent' && desired === undefined) return;
    if (meaning === 'exists' && desired !== undefined) {
      const { pattern, script } = desired;
      const routes = await client.routes(zoneId, signal);
      if (routes.some((route) => route.pattern === pattern && route.script === script)) return;
    }
    if (meaning === 'absent' || meaning === 'exists') {
      throw new RetryableError('the route changed since it was observed', { cause: error });
    }
    const isCreation = desired !== undefined && before === undefined;
    // Cloudflare documents no code for this quota: in a full zone, any refusal of another route counts.
    if (isCreation && (meaning === 'quota' || (meaning === 'refused' && isFull()))) {
      throw new QuotaReachedError(`the zone takes no more Workers routes (${error.message})`, {
        cause: error,
      });
    }
    throw error;
  }
}
