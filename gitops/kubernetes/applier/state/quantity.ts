/** Source: k8s.io/apimachinery, pkg/api/resource/quantity.go. `1E` is a suffix, `1E3` an exponent. */
const QUANTITY = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+)|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?$/;
const FACTORS: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** The number that a Kubernetes quantity means, such as `500m`, `1Gi` or `1e3`; 0 for a text that isn't a quantity. */
export function amountOf(quantity: string): number {
  const match = QUANTITY.exec(quantity);
  if (match === null) return 0;
  const [, digits = '', exponent = '0', suffix = ''] = match;
  return Number(`${digits}e${exponent}`) * (FACTORS[suffix] ?? 1);
}
