/** Buckets per doubling: a quantile is at most a tenth off. */
const PER_DOUBLING = 4;
/** The last bucket begins at 2^16.75 ms, almost two minutes. */
const LAST = 17 * PER_DOUBLING;

/** The bucket of a duration in milliseconds: 0 for less than one. Buckets are the same everywhere, so that they add up. */
export function latencyBucket(ms: number): number {
  return ms < 1 ? 0 : Math.min(LAST, 1 + Math.floor(Math.log2(ms) * PER_DOUBLING));
}

/** The duration in milliseconds that this fraction of the requests didn't exceed; `null`: there are none. */
export function quantile(buckets: ReadonlyMap<number, number>, fraction: number): number | null {
  const sorted = [...buckets].sort(([a], [b]) => a - b);
  const total = sorted.reduce((sum, [, count]) => sum + count, 0);
  let left = Math.ceil(total * fraction);
  for (const [bucket, count] of sorted) {
    left -= count;
    if (left <= 0) return middle(bucket);
  }
  return null;
}

/** The middle of a bucket by ratio, to three digits. */
function middle(bucket: number): number {
  return bucket === 0 ? 0.5 : Number((2 ** ((bucket - 0.5) / PER_DOUBLING)).toPrecision(3));
}
