import { pino } from 'pino';
import { systemClock } from '../../../base/clock.ts';
import type { Settings } from '../../../management/context/context.ts';
import type { ConnectedDatabase } from '../../../management/db/connected.ts';
import type { RawObjects } from '../../../management/raw-objects/raw-objects.ts';
import { TRAFFIC } from '../management/world.ts';

/** What a collector works with, without the API. */
export function collectorParts(db: ConnectedDatabase, rawObjects: RawObjects, level = 'silent') {
  return {
    db,
    rawObjects,
    log: pino({ level }),
    clock: systemClock,
    settings: { traffic: TRAFFIC } as Settings, // all that it reads
  };
}
