import { RetryableError } from '../../base/errors.ts';
import { counted } from '../../base/text.ts';

interface CountedPage<Item> {
  readonly result: readonly Item[];
  readonly result_info: { readonly total_count: number };
}

/**
 * All items of a list with numbered pages. Throws `RetryableError` if an item came twice, or if there are not as many
 * items as the last page's `total_count`. The cause is a short page, or a list that changed while it was read.
 */
export async function everyPage<Item extends { id: string }>(
  fetchPage: (page: number) => Promise<CountedPage<Item>>,
): Promise<Item[]> {
  const items = new Map<string, Item>();
  let seen = 0;
  for (let number = 1; ; number += 1) {
    const { result, result_info: info } = await fetchPage(number);
    seen += result.length;
    for (const item of result) items.set(item.id, item);
    if (seen < info.total_count && result.length > 0) continue;
    if (seen !== items.size) {
      throw new RetryableError(`Cloudflare listed ${counted(seen - items.size, 'item')} twice`);
    }
    if (items.size !== info.total_count) {
      throw new RetryableError(`Cloudflare listed ${items.size} of ${counted(info.total_count, 'item')}`);
    }
    return [...items.values()];
  }
}

interface CursorPage<Item> {
  readonly result: readonly Item[];
  readonly result_info: { readonly count: number; readonly cursor?: string | undefined };
}

/** All items of a list with cursors; the last page has no cursor, or an empty one. */
export async function everyCursorPage<Item>(
  fetchPage: (cursor: string | undefined) => Promise<CursorPage<Item>>,
): Promise<Item[]> {
  const items: Item[] = [];
  const cursors = new Set<string>();
  let cursor: string | undefined;
  for (;;) {
    const { result, result_info: info } = await fetchPage(cursor);
    if (result.length !== info.count) {
      throw new RetryableError(
        `Cloudflare sent ${result.length} of the ${counted(info.count, 'key')} of a page`,
      );
    }
    items.push(...result);
    if (info.cursor === undefined || info.cursor === '') return items;
    if (cursors.has(info.cursor)) throw new RetryableError('Cloudflare sent the same cursor twice');
    cursors.add(info.cursor);
    cursor = info.cursor;
  }
}
