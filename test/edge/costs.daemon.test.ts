import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { costTable, type Operations } from '../support/costs/prices.ts';
import { countRawLogs } from '../support/costs/raw-logs.ts';
import { type Counted, countVisits, PROGRAM } from '../support/costs/visits.ts';

const docs = readFileSync(new URL('../../docs/costs.md', import.meta.url), 'utf8');
const wrangler = readFileSync(new URL('../../wrangler.jsonc', import.meta.url), 'utf8');
const setting = (name: string) => Number(new RegExp(`"${name}": (\\d+)`).exec(wrangler)?.[1]);

/** The operations of 1,000 visits. */
async function operationsOf(counted: Counted): Promise<Operations> {
  const { messages, objects } = await countRawLogs(counted.requests, {
    maxBatchSize: setting('max_batch_size'),
    maxBatchTimeoutMs: setting('max_batch_timeout') * 1000,
  });
  const visits = (count: number) => Math.round((count * 1000) / PROGRAM.length);
  return {
    requests: visits(counted.requests.length),
    kvReads: visits(counted.reads),
    kvWrites: visits(counted.writes),
    queueOperations: visits(3 * messages),
    r2Writes: visits(objects),
  };
}

let counted: Counted;
beforeAll(async () => {
  counted = await countVisits();
});

test('the table of docs/costs.md has the operations that 1,000 visits cost; a bot’s visit writes nothing', async () => {
  expect(counted.botWrites).toBe(0);
  expect(docs).toContain(costTable(await operationsOf(counted)));
});
