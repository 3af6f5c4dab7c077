const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];

/**
 * Bytes as the API server writes a quantity itself, with the largest suffix that gives a whole number: other texts of the
 * same amount would differ from what it has stored.
 */
export function memoryQuantity(bytes: number): string {
  let amount = bytes;
  let suffix = 0;
  while (amount > 0 && amount % 1024 === 0 && suffix < BINARY.length - 1) {
    amount /= 1024;
    suffix += 1;
  }
  return `${amount}${BINARY[suffix]}`;
}

/** Cores in thousandths of one, the smallest part that Kubernetes knows; at least 1. */
export function milliCores(cpus: number): number {
  return Math.max(1, Math.round(cpus * 1000));
}

/** Thousandths of a core, as the API server writes the quantity itself. */
export function cpuQuantity(milli: number): string {
  return milli % 1000 === 0 ? String(milli / 1000) : `${milli}m`;
}
