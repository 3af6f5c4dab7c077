import type { ColumnType, Generated } from 'kysely';
import type { Json } from './columns.ts';

/** What is known of the traffic as a whole: one row. */
interface TrafficState {
  single: Generated<boolean>;
  /** Records from this time on are collected; `null`: nothing was ever collected. */
  since: Date | null;
  /** The oldest time that can have rows of this span (a minute, an hour, a day); older rows were removed, or never made. */
  minutes_from: Date | null;
  hours_from: Date | null;
  days_from: Date | null;
  /** A day (`YYYY-MM-DD`). The notes on the counted objects and records of earlier days (`traffic_objects`, `traffic_batches`)
   * are deleted. */
  notes_from: string | null;
  /** Hours before this time have no sums by quarters of an hour. */
  quarters_from: Date | null;
}

/** The processes that collect. */
interface TrafficCollectors {
  id: string;
  seen_at: ColumnType<Date, never, never>;
}

/** Each object belongs to one part, and each part to one process at a time. */
interface TrafficLeases {
  part: number;
  holder: string | null;
  until: Date | null;
  /** Everything of this part that was in the bucket at this time has been collected. */
  collected_until: Date | null;
}

/** The objects that were read. Kept only for days for which objects may still arrive late. */
interface TrafficObjects {
  /** Made from key and size. */
  id: string;
  day: string;
}

/** The records that were counted. Kept for the same days. */
interface TrafficBatches {
  batch: string;
  /** The number of a block of 52 records of the batch. */
  block: number;
  /** One bit for each record of the block, set if it was counted. The lowest bit is the first record's. */
  seen: string;
  day: string;
}

/** Lines and whole objects that were refused: they are not counted. */
interface TrafficFaults {
  key: string;
  kind: string;
  lines: number;
  at: Generated<Date>;
}

/**
 * The sums of one container in one minute, hour or day (UTC). The rows of the nil UUID are the sums of everything, including
 * requests for hostnames of no site.
 */
interface TrafficSums {
  container: string;
  time: Date;
  /** Whether these are our own probes. */
  probe: boolean;
  counts: Json<Record<string, number>>;
}

/** Requests to delete a container's records. */
interface TrafficDeletions {
  container: string;
  /** Records before this time are deleted. */
  until: Date;
  requested_by: string;
  requested_at: ColumnType<Date, Date, Date>;
  /** The last key that was searched. */
  position: string | null;
  objects: number;
  records: number;
  completed_at: Date | null;
  /** When the host's deletion of the tag servers' log lines was recorded; `null`: not deleted yet. */
  logs_deleted_at: Date | null;
}

export interface TrafficTables {
  traffic_state: TrafficState;
  traffic_collectors: TrafficCollectors;
  traffic_leases: TrafficLeases;
  traffic_objects: TrafficObjects;
  traffic_batches: TrafficBatches;
  traffic_faults: TrafficFaults;
  traffic_minutes: TrafficSums;
  traffic_hours: TrafficSums;
  traffic_days: TrafficSums;
  traffic_deletions: TrafficDeletions;
}
