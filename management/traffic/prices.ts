/**
 * The operations at Cloudflare that 1,000 usual visits cause, and their list prices per million
 * (docs/costs.md).
 */
const PER_VISITS = {
  requests: 5800,
  kvReads: 6100,
  kvWrites: 900,
  queueOperations: 11_400,
  r2Writes: 1000,
} as const;
const DOLLARS = { requests: 0.3, kvReads: 0.5, kvWrites: 5, queueOperations: 0.4, r2Writes: 4.5 } as const;

type Operation = keyof typeof PER_VISITS;
type EdgeOperations = Record<Operation, number>;

/** What the requests cause at the edge: their own number is exact, the other numbers assume usual visits. */
export function edgeOperations(requests: number): EdgeOperations {
  const of = (operation: Operation) => Math.round((requests * PER_VISITS[operation]) / PER_VISITS.requests);
  return {
    requests,
    kvReads: of('kvReads'),
    kvWrites: of('kvWrites'),
    queueOperations: of('queueOperations'),
    r2Writes: of('r2Writes'),
  };
}

/** US dollars at list prices, to a millionth. What a plan includes is not subtracted. */
export function listPrice(operations: EdgeOperations): number {
  const names = Object.keys(DOLLARS) as Operation[]; // the keys of the literal above
  const dollars = names.reduce((sum, name) => sum + (operations[name] * DOLLARS[name]) / 1e6, 0);
  return Number(dollars.toFixed(6));
}
