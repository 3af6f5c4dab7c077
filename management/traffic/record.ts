/** The members of a record that are counted (docs/logs.md). Records of older releases may lack the optional ones. */
export interface TrafficRecord {
  /** ISO 8601 in UTC. */
  readonly time: string;
  readonly route: string;
  readonly status: number;
  readonly duration: number;
  readonly container: string | null;
  readonly cache?: unknown;
  readonly country?: unknown;
  readonly signals?: unknown;
  readonly error?: unknown;
  readonly bytesIn?: unknown;
  readonly bytesOut?: unknown;
  readonly bot?: unknown;
  readonly consent?: unknown;
  readonly events?: unknown;
  readonly webContainerVersion?: unknown;
  readonly probe?: unknown;
  readonly batch?: unknown;
  readonly index?: unknown;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export const isUuid = (value: unknown): value is string => typeof value === 'string' && UUID.test(value);

/** `torn`: the line is no whole JSON value; `foreign`: it is no record. */
export function readRecord(line: string): TrafficRecord | 'torn' | 'foreign' {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return 'torn';
  }
  return isRecord(value) ? value : 'foreign';
}

function isRecord(value: unknown): value is TrafficRecord {
  if (typeof value !== 'object' || value === null) return false;
  const { time, route, status, duration, container } = value as Partial<Record<keyof TrafficRecord, unknown>>;
  return (
    typeof time === 'string' &&
    TIME.test(time) &&
    !Number.isNaN(Date.parse(time)) &&
    typeof route === 'string' &&
    route.length <= 200 &&
    // The database refuses a text that fails these two checks, and all that is written with it.
    route.isWellFormed() &&
    !route.includes('\0') &&
    typeof status === 'number' &&
    typeof duration === 'number' &&
    (container === null || typeof container === 'string')
  );
}

/** A number from 0 to below 2^40, rounded down; anything else counts as 0. */
export const countOf = (value: unknown): number =>
  typeof value === 'number' && value > 0 && value < 2 ** 40 ? Math.floor(value) : 0;
