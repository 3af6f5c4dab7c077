import type { RecordSpec } from './desired.ts';
import type { ListedRecord } from './observed.ts';

/** One change to a zone's records. `comment` is the mark to write. */
export interface RecordChange {
  readonly write?: { readonly record: RecordSpec; readonly comment: string };
  /** The id of the record to overwrite; `null`: create one. Without `write`, the record with this id is deleted. */
  readonly keep: string | null;
  /** Ids of records to delete in the same transaction. */
  readonly surplus: readonly string[];
}

/** A zone at some DNS provider. Both methods throw `RetryableError` or `TerminalError`. */
export interface DnsProvider {
  /** All records of the zone; with `names`, at least those with these names. */
  list(signal: AbortSignal, names?: ReadonlySet<string>): Promise<readonly ListedRecord[]>;
  /** Makes one change, alone or in a batch with concurrent ones. A record that is already gone counts as deleted. */
  change(change: RecordChange, signal: AbortSignal): Promise<void>;
}
