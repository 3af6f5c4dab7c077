/** Cloudflare's list prices beyond what a plan includes, in US dollars per million (docs/facts.md, "Prices"). */
const PRICES = {
  requests: 0.3,
  kvReads: 0.5,
  kvWrites: 5,
  queueOperations: 0.4,
  r2Writes: 4.5,
} as const;
type Item = keyof typeof PRICES;

export type Operations = Readonly<Record<Item, number>>;

const NAMES: Readonly<Record<Item, string>> = {
  requests: 'requests to the worker',
  kvReads: 'KV reads',
  kvWrites: 'KV writes and deletes',
  queueOperations: 'queue operations (three a message)',
  r2Writes: 'R2 class A operations',
};
const ITEMS = Object.keys(PRICES) as Item[]; // the keys of the literal above

const cost = (operations: Operations, item: Item) => (operations[item] * PRICES[item]) / 1e6;

/** US dollars for these operations. */
const total = (operations: Operations): number =>
  ITEMS.reduce((sum, item) => sum + cost(operations, item), 0);

const dollars = (amount: number, digits: number) => `$${amount.toFixed(digits)}`;

/** The table of docs/costs.md, for the operations of 1,000 visits. */
export function costTable(operations: Operations): string {
  const rows = ITEMS.map((item) =>
    [
      NAMES[item],
      String(operations[item]),
      dollars(PRICES[item], 2),
      dollars(cost(operations, item), 5),
    ].join(' | '),
  );
  return [
    '| operation | per 1,000 visits | per million | costs |',
    '|---|---|---|---|',
    ...rows.map((row) => `| ${row} |`),
    `| all | | | ${dollars(total(operations), 5)} |`,
  ].join('\n');
}
