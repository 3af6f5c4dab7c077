import { expect, test } from 'vitest';
import { everyPage } from '../../../gitops/clients/cloudflare-paging.ts';

const item = (id: string) => ({ id });

test.each([
  ['an item came twice', [['a', 'b'], ['b', 'c'], []], 3, 'Cloudflare listed 1 item twice'],
  ['a page was short', [['a', 'b'], []], 3, 'Cloudflare listed 2 of 3 items'],
])('a list is refused if %s', async (_what, pages, total, message) => {
  const read = everyPage(async (page) => ({
    result: (pages[page - 1] ?? []).map(item),
    result_info: { total_count: total },
  }));
  await expect(read).rejects.toThrow(message);
});
