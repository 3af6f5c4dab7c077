import { z } from 'zod';
import { ManagementProblem } from '../http/errors.ts';

/** The query of a list. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(2_000).optional().meta({ description: '`next` of the previous page' }),
};

/** The query of a list whose cursor is the sequence number of a row. */
export const sequenceQuery = {
  ...pageQuery,
  cursor: z
    .string()
    .regex(/^\d{1,18}$/)
    .optional()
    .meta({ description: '`next` of the previous page' }),
};

/** An answer with one page of these. */
export function pageSchema<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    next: z.string().nullable().meta({ description: 'pass it as `cursor`; null: this is the last page' }),
  });
}

/**
 * One page of `rows`. The caller reads one row more than `limit`, if there is one. `keyOf` of the page's last row
 * becomes `next`: the next page begins after that row.
 */
export function listPage<Row>(
  rows: readonly Row[],
  limit: number,
  keyOf: (row: Row) => readonly string[],
): { items: Row[]; next: string | null } {
  return paged(rows, limit, (row) => Buffer.from(JSON.stringify(keyOf(row))).toString('base64url'));
}

/**
 * The key that the previous page's `keyOf` returned; `null`: this is the first page. Throws `invalid_request` if the
 * cursor is not from such a page.
 */
export function keyFrom<Key>(cursor: string | undefined, schema: z.ZodType<Key>): Key | null {
  if (cursor === undefined) return null;
  const key = schema.safeParse(decoded(cursor));
  if (key.success) return key.data;
  throw wrongCursor();
}

/** The problem for a cursor that is not from a page of the list. */
export function wrongCursor(): ManagementProblem {
  const message = 'must be `next` of a page of this list in the same order';
  return new ManagementProblem('invalid_request', {
    detail: `cursor ${message}`,
    errors: [{ path: 'cursor', message }],
  });
}

function decoded(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    return null;
  }
}

/** Like `listPage`, with `cursorOf` instead of a key. */
export function paged<Row>(rows: readonly Row[], limit: number, cursorOf: (row: Row) => string) {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? cursorOf(last) : null };
}
