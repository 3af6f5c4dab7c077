import { RetryableError, TerminalError } from '../../../base/errors.ts';
import type { Rfc2136Client } from '../../clients/rfc2136.ts';
import { UpdateRefusal } from '../../clients/rfc2136-errors.ts';
import { inBatches } from './batches.ts';
import { displaced, updateCommands } from './commands.ts';
import { canonicalRecord, recordKey } from './desired.ts';
import { type ListedRecord, POINTING } from './observed.ts';
import type { DnsProvider, RecordChange } from './provider.ts';
import { listedRecords } from './zone-records.ts';

/** A limit for the text of the commands. A DNS message holds 64 KiB, in which no command is longer than its text. */
const MAX_MESSAGE = 60_000;

/**
 * A zone at a primary that accepts RFC 2136 updates. The mark of a record is a TXT record under a separate name. Both
 * are written in one transaction, on the condition that neither has changed since it was observed.
 */
export function rfc2136Dns({ client, zone }: { client: Rfc2136Client; zone: string }): DnsProvider {
  const list = async (signal: AbortSignal) => listedRecords(await client.transfer(signal), zone);

  async function send(changes: readonly RecordChange[], signal: AbortSignal): Promise<void> {
    try {
      await client.update(changes.flatMap(updateCommands), signal);
    } catch (error) {
      const [only] = changes;
      const unmet = error instanceof UpdateRefusal && error.meaning === 'prerequisite';
      if (changes.length !== 1 || only === undefined || !unmet) throw error;
      // An earlier update may have made the change, although its answer was lost.
      if (isDone(only, await list(signal))) return;
      throw new RetryableError('a record changed since it was observed', { cause: error });
    }
  }
  const change = inBatches({
    sender: () => send,
    cost: (item) => updateCommands(item).join('\n').length,
    room: MAX_MESSAGE,
    mayBeOneRecord: (error) => error instanceof UpdateRefusal,
  });
  return {
    list,
    async change(item, signal) {
      const beside = displaced(item).find(({ type }) => !POINTING.has(type));
      if (beside !== undefined) {
        throw new TerminalError(
          `${beside.name} has a ${beside.type} record, which can’t exist beside a CNAME: delete it`,
        );
      }
      return change(item, signal);
    },
  };
}

function isDone(change: RecordChange, listed: readonly ListedRecord[]): boolean {
  const { write } = change;
  const there = Map.groupBy(listed.map(canonicalRecord), recordKey);
  const written = write === undefined ? null : recordKey(write.record);
  const gone = displaced(change)
    .map((stored) => recordKey(canonicalRecord({ ...stored, content: '' })))
    .every((key) => key === written || !there.has(key));
  if (write === undefined || written === null) return gone;
  const [found, ...others] = there.get(written) ?? [];
  const { content, ttl } = write.record;
  return (
    gone &&
    others.length === 0 &&
    found?.content === content &&
    found.ttl === ttl &&
    found.comment === write.comment
  );
}
