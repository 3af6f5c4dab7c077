import { z } from 'zod';
import { examples } from '../../http/examples.ts';
import { pageQuery } from '../../view/page.ts';
import { changeList } from '../../view/plan.ts';

const commit = z.string().regex(/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/, 'must be the full id of a commit');

export const historyQuery = z.strictObject({
  limit: pageQuery.limit,
  cursor: commit.optional().meta({ description: '`next` of the previous page' }),
});

const entry = z
  .object({
    commit: z.string(),
    author: z.string().meta({ description: 'the name of the commit’s author' }),
    at: z.iso.datetime({ offset: true }),
    subject: z.string(),
    reason: z.string().nullable(),
    valid: z
      .boolean()
      .meta({ description: 'false: the commit made the manifest invalid, so it changed nothing' }),
    changes: changeList,
  })
  .meta({ id: 'HistoryEntry', description: 'a commit that changed the container' });
export type HistoryEntryView = z.output<typeof entry>;

export const historyPage = z.object({
  history: z.array(entry),
  next: z.string().nullable().meta({ description: 'pass it as `cursor`; null: this is the last page' }),
});

export const revertBody = z
  .strictObject({ commit })
  .meta(examples({ 'a commit': { commit: '5f1c0e9a7b3d2c4e6f8091a2b3c4d5e6f7081920' } }));
