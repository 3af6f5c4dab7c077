import { z } from 'zod';
import type { ListOrder, ListPosition } from '../../records/container-lists.repository.ts';
import { keyFrom, wrongCursor } from '../../view/page.ts';

/** In a list by creation, a cursor is a number, as all cursors were before lists could be sorted. */
const NUMBER = /^\d{1,18}$/;

const TIME = /^\d{4}-\d\d-\d\d [\d:.]{8,15}[+-]\d\d(:\d\d)?$/;
const FIGURE = /^\d{1,18}(\.\d{1,20})?$/;
/** The text of values that aren't text in the database. */
const FORMS: Partial<Record<ListOrder['key'], RegExp>> = {
  ...{ updatedAt: TIME, lastVisit: TIME, requests: FIGURE, errors: FIGURE },
};

const position = z.tuple([z.string(), z.string().max(200), z.string().regex(NUMBER)]);

/** The text of a position in a list of this order. */
export function cursorOf(sort: string, order: ListOrder, { key, seq }: ListPosition): string {
  if (order.key === 'createdAt') return seq;
  return Buffer.from(JSON.stringify([sort, key, seq])).toString('base64url');
}

/** The position that a cursor names. Throws `invalid_request` unless it is from a list of this order. */
export function positionOf(sort: string, { key }: ListOrder, cursor: string): ListPosition {
  if (NUMBER.test(cursor)) {
    if (key === 'createdAt') return { key: cursor, seq: cursor };
    throw wrongCursor();
  }
  const [of, text, seq] = keyFrom(cursor, position) ?? [];
  if (of !== sort || text === undefined || seq === undefined) throw wrongCursor();
  const form = FORMS[key];
  if (form !== undefined && !form.test(text)) throw wrongCursor();
  return { key: text, seq };
}
