import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { archive, rawLog } from '../../edge/logs/raw-log.ts';
import { EARLIER_COMMIT, EARLIER_OPERATIONS } from '../support/costs/earlier-operations.ts';
import { earlierVersion, hasCommit } from '../support/costs/earlier-version.ts';
import { costTable, type Operations, total } from '../support/costs/prices.ts';
import { countRawLogs, type RawLogs } from '../support/costs/raw-logs.ts';
import { type Counted, countVisits, PROGRAM } from '../support/costs/visits.ts';

const docs = readFileSync(new URL('../../docs/costs.md', import.meta.url), 'utf8');
const wrangler = readFileSync(new URL('../../wrangler.jsonc', import.meta.url), 'utf8');
const setting = (name: string) => Number(new RegExp(`"${name}": (\\d+)`).exec(wrangler)?.[1]);

/** The operations of 1,000 visits. */
async function operationsOf(counted: Counted, logs: RawLogs): Promise<Operations> {
  const { messages, objects } = await countRawLogs(counted.requests, logs);
  const visits = (count: number) => Math.round((count * 1000) / PROGRAM.length);
  return {
    requests: visits(counted.requests.length),
    kvReads: visits(counted.reads),
    kvWrites: visits(counted.writes),
    queueOperations: visits(3 * messages),
    r2Writes: visits(objects),
  };
}

const NOW: RawLogs = {
  rawLog,
  archive,
  maxBatchSize: setting('max_batch_size'),
  maxBatchTimeoutMs: setting('max_batch_timeout') * 1000,
};

let counted: Counted;
beforeAll(async () => {
  counted = await countVisits(undefined, { isJson: false, reportsEachView: false });
});

test('the table of docs/costs.md has the operations that 1,000 visits cost; a bot’s visit writes nothing', async () => {
  expect(counted.botWrites).toBe(0);
  expect(docs).toContain(costTable(await operationsOf(counted, NOW)));
});

test('1,000 visits cost at most half of what they did at an earlier commit', async () => {
  expect(docs).toContain(`At commit \`${EARLIER_COMMIT.slice(0, 7)}\``);
  expect(docs).toContain(costTable(EARLIER_OPERATIONS));
  expect(total(await operationsOf(counted, NOW)) / total(EARLIER_OPERATIONS)).toBeLessThanOrEqual(0.5);
});

const canRecount = hasCommit(EARLIER_COMMIT);
const unless = canRecount ? '' : ` (this clone lacks it: git fetch --unshallow)`;
test.skipIf(!canRecount)(
  `the operations of the earlier commit are those that are counted in its tree${unless}`,
  async () => {
    using earlier = earlierVersion(EARLIER_COMMIT, ['edge', 'plugins', 'test/edge', 'tsconfig.json']);
    const logs: Pick<RawLogs, 'rawLog' | 'archive'> = await import(join(earlier.folder, 'edge/raw-log.ts'));
    const entry = join(earlier.folder, 'test/edge/worker/worker.ts');
    const visits = await countVisits(entry, { isJson: true, reportsEachView: true });
    // At that commit, each message became one object, so the sizes of the deliveries don't matter.
    const before = await operationsOf(visits, { ...logs, maxBatchSize: 10, maxBatchTimeoutMs: 5000 });
    expect(before).toEqual(EARLIER_OPERATIONS);
  },
);
