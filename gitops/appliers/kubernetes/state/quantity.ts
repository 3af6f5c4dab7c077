const QUANTITY = /^(\d+(?:\.\d+)?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$/;
const FACTORS: Readonly<Record<string, number>> = {
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
};

/** The number that a Kubernetes quantity means, such as `500m` or `1Gi`; 0 for what is none. */
export function amountOf(quantity: string): number {
  const match = QUANTITY.exec(quantity);
  return match === null ? 0 : Number(match[1]) * (FACTORS[match[2] ?? ''] ?? 1);
}
