/**
 * Sends `items` together. If the batch is refused, sends its halves, down to the items at fault. `isRefusal` says
 * whether one item can cause the error. Any other error (a timeout, a revoked token) fails the whole batch: another
 * attempt would not locate a fault, or would repeat a write.
 */
export async function bisect<Item>(
  items: readonly Item[],
  send: (items: readonly Item[]) => Promise<void>,
  isRefusal: (error: unknown) => boolean,
): Promise<PromiseSettledResult<void>[]> {
  try {
    await send(items);
    return items.map(() => ({ status: 'fulfilled', value: undefined }));
  } catch (reason) {
    if (items.length <= 1 || !isRefusal(reason)) return items.map(() => ({ status: 'rejected', reason }));
    const middle = Math.ceil(items.length / 2);
    const first = await bisect(items.slice(0, middle), send, isRefusal);
    return [...first, ...(await bisect(items.slice(middle), send, isRefusal))];
  }
}
