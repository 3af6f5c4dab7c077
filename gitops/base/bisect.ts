/**
 * Sends `items` together; where the whole is refused, in halves, down to the item that poisons it. `isRefusal` says
 * whether an error can be one item's fault: any other one (a timeout, a revoked token) fails all that were sent with it,
 * because sending them again would tell nothing, or do something twice.
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
