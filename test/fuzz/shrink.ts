/**
 * Delta debugging: returns the fewest items, in their order, for which it found `fails` to be true. It tries the last
 * item alone first, because only the check after it has failed. Then it tries to omit pieces, ever smaller ones.
 */
export async function shrink<Item>(
  items: readonly Item[],
  fails: (items: readonly Item[]) => Promise<boolean>,
): Promise<readonly Item[]> {
  const last = items.slice(-1);
  if (items.length <= 1 || (await fails(last))) return last;
  let kept = items;
  for (let size = Math.floor(kept.length / 2); size >= 1; size = Math.floor(size / 2)) {
    // Omits pieces from the end to the start, but never the last item: its check is the one that failed.
    for (let end = kept.length - 1; end > 0; end -= size) {
      const without = [...kept.slice(0, Math.max(0, end - size)), ...kept.slice(end)];
      if (without.length < kept.length && (await fails(without))) kept = without;
    }
  }
  return kept;
}
