import type { ColumnType, Generated } from 'kysely';
import type { Json } from './columns.ts';

/** What is known of the traffic as a whole: one row. */
interface TrafficState {
  single: Generated<boolean>;
  /** From here on, what the bucket has is collected; `null`: nothing was ever collected. */
  since: Date | null;
  /** The time from which on there are rows of this length: older ones were removed, or never made. */
  minutes_from: Date | null;
  hours_from: Date | null;
  days_from: Date | null;
  /** Which objects and records of earlier days were counted is not noted any more (`YYYY-MM-DD`). */
  notes_from: string | null;
  /** Hours before this time have no sums of their quarters. */
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

/** Objects that were read, of the days that late ones may still belong to. */
interface TrafficObjects {
  /** Made from key and size. */
  id: string;
  day: string;
}

/** Records that were counted, of the same days. */
interface TrafficBatches {
  batch: string;
  /** The number of a block of 52 records of the batch. */
  block: number;
  /** One bit for each record that was counted, the first record's lowest. */
  seen: string;
  day: string;
}

/** Lines and objects that are no records. */
interface TrafficFaults {
  key: string;
  kind: string;
  lines: number;
  at: Generated<Date>;
}

/** The sums of one container in one minute, hour or day (UTC). The nil UUID: of everything, also of unknown hosts. */
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
  /** When the host had deleted what the containers have printed. */
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
