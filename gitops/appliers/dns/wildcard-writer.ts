import { QuotaReachedError, RetryableError } from '../../../base/errors.ts';
import { ALL_SITES, contentHash, formatMark, type Identity } from '../../../base/ownership.ts';
import { canonicalRecord } from './desired.ts';
import { lostWildcard } from './host-wildcards.ts';
import type { DnsProvider, RecordChange } from './provider.ts';
import type { MissingWildcard } from './wildcard.ts';

/** A name's own record that may become the wildcard in a full zone: its id, and the write that restores it. */
interface Spare {
  readonly id: string;
  readonly write: NonNullable<RecordChange['write']>;
}

interface WildcardWriterOptions extends DnsProvider {
  readonly identity: Identity;
}

/** Writes each wildcard once for all names that need it. */
export function wildcardWriter({ list, change, identity }: WildcardWriterOptions) {
  const writing = new Map<string, Promise<void>>();

  async function create({ record, keep }: MissingWildcard, spare: Spare | null, signal: AbortSignal) {
    const write = { record, comment: formatMark(identity, ALL_SITES, contentHash(record)) };
    try {
      await change({ write, keep, surplus: [] }, signal);
    } catch (error) {
      if (!(error instanceof QuotaReachedError) || spare === null) throw error;
      await change({ write, keep: spare.id, surplus: [] }, signal);
      return await yieldToOther(record.name, spare, signal);
    }
    await yieldToOther(record.name, null, signal);
  }

  /** Another host may have written its wildcard at the same time: providers allow both. */
  async function yieldToOther(name: string, spare: Spare | null, signal: AbortSignal): Promise<void> {
    const listed = (await list(signal, new Set([name]))).map(canonicalRecord);
    const lost = lostWildcard(
      listed.filter((record) => record.name === name),
      identity,
    );
    if (lost === null) return;
    const back = spare === null ? {} : { write: spare.write };
    await change({ ...back, keep: lost.id, surplus: [] }, signal);
    throw new RetryableError(`another host wrote ${name} first: this host’s names need records of their own`);
  }

  return {
    write(missing: MissingWildcard, spare: Spare | null, signal: AbortSignal): Promise<void> {
      const { name } = missing.record;
      const started = writing.get(name);
      if (started !== undefined) return started;
      const running = create(missing, spare, signal);
      writing.set(name, running);
      running.catch(() => writing.delete(name));
      return running;
    },
    /** The zone was observed again, so what was written may be gone. */
    forget: () => writing.clear(),
  };
}
