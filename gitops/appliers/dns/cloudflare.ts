import { QuotaReachedError, RetryableError } from '../../../base/errors.ts';
import { type CloudflareClient, DNS_PAGE, MAX_DNS_BATCH } from '../../clients/cloudflare.ts';
import { CloudflareRefusal } from '../../clients/cloudflare-errors.ts';
import { inBatches } from './batches.ts';
import { canonicalRecord } from './desired.ts';
import type { DnsProvider, RecordChange } from './provider.ts';

interface CloudflareDnsOptions {
  readonly client: CloudflareClient;
  readonly zoneId: string;
  /** Records in one page of a listing; a zone of one page is always listed as a whole. */
  readonly pageSize?: number;
}

/** A zone at Cloudflare. */
export function cloudflareDns({ client, zoneId, pageSize = DNS_PAGE }: CloudflareDnsOptions): DnsProvider {
  /** Pages of the last whole listing. */
  let pages = 1;
  return {
    async list(signal, names) {
      // List by name, with one call per name, if the zone has more pages than there are names.
      if (names !== undefined && names.size < pages) {
        const found = await Promise.all(
          [...names].map((name) => client.dnsRecords(zoneId, { name }, signal)),
        );
        return found.flat();
      }
      const records = await client.dnsRecords(zoneId, {}, signal);
      pages = Math.ceil(records.length / pageSize);
      return records;
    },
    change: inBatches({
      sender: () => batchSender(client, zoneId),
      // The limit counts operations: a change that replaces foreign records has several.
      cost: ({ surplus }) => 1 + surplus.length,
      room: MAX_DNS_BATCH,
      mayBeOneRecord,
    }),
  };
}

function removedIds({ write, keep, surplus }: RecordChange): string[] {
  return write === undefined && keep !== null ? [keep, ...surplus] : [...surplus];
}

/**
 * True if one record may have caused the refusal of the batch. A full zone is such a case: it still takes deletes,
 * updates and perhaps some of the new records, and bisection finds which.
 */
function mayBeOneRecord(error: unknown): boolean {
  return error instanceof CloudflareRefusal && error.meaning !== 'unauthorized';
}

/** Once the zone has refused a single new record because its quota is reached, no batch of only new records is sent. */
function batchSender(client: CloudflareClient, zoneId: string) {
  let full: CloudflareRefusal | null = null;
  return async (changes: readonly RecordChange[], signal: AbortSignal): Promise<void> => {
    const isOneMore = changes.every(
      ({ write, keep, surplus }) => write && keep === null && surplus.length === 0,
    );
    if (full !== null && isOneMore) throw changes.length === 1 ? quotaReached(full) : full;
    try {
      await sendBatch(client, zoneId, changes, signal);
    } catch (error) {
      if (!(error instanceof CloudflareRefusal) || error.meaning !== 'quota' || changes.length > 1)
        throw error;
      full = error;
      throw quotaReached(error);
    }
  };
}

function quotaReached(refusal: CloudflareRefusal): QuotaReachedError {
  return new QuotaReachedError(`the zone takes no more DNS records (${refusal.message})`, { cause: refusal });
}

async function sendBatch(
  client: CloudflareClient,
  zoneId: string,
  changes: readonly RecordChange[],
  signal: AbortSignal,
): Promise<void> {
  const written = changes.flatMap(({ write, keep }) =>
    write === undefined ? [] : [{ keep, body: { ...write.record, comment: write.comment } }],
  );
  const batch = {
    deletes: changes.flatMap(removedIds).map((id) => ({ id })),
    puts: written.flatMap(({ keep, body }) => (keep === null ? [] : [{ ...body, id: keep }])),
    posts: written.flatMap(({ keep, body }) => (keep === null ? [body] : [])),
  };
  try {
    await client.batchDnsRecords(zoneId, batch, signal);
  } catch (error) {
    const [only] = changes;
    if (changes.length !== 1 || only === undefined || !(error instanceof CloudflareRefusal)) throw error;
    await settleOne({ client, zoneId, signal }, only, error);
  }
}

/**
 * Handles the refusal of a single change: it may have been made already, or the records changed since they were
 * observed.
 */
async function settleOne(
  { client, zoneId, signal }: { client: CloudflareClient; zoneId: string; signal: AbortSignal },
  change: RecordChange,
  refusal: CloudflareRefusal,
): Promise<void> {
  const { write } = change;
  if (refusal.meaning === 'absent') {
    if (write === undefined && removedIds(change).length === 1) return;
    throw new RetryableError('a record was deleted since it was observed', { cause: refusal });
  }
  if (refusal.meaning !== 'exists' || write === undefined) throw refusal;
  const { record, comment } = write;
  const there = (await client.dnsRecords(zoneId, { name: record.name }, signal)).map(canonicalRecord);
  const done = there.some(
    (found) =>
      found.type === record.type &&
      found.content === record.content &&
      found.proxied === record.proxied &&
      found.comment === comment,
  );
  if (!done) throw new RetryableError(`${record.name} was taken since it was observed`, { cause: refusal });
}
