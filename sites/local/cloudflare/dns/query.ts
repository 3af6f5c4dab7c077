import { z } from 'zod';
import { ApiError } from '../api/envelope.ts';
import type { EmulatedRecord } from './record.ts';

/** The supported filters of `GET dns_records`. Others are ignored, as in the real API. */
const query = z.object({
  page: z.coerce.number().int().min(1).default(1),
  per_page: z.coerce.number().int().min(1).max(5_000_000).default(100),
  order: z.enum(['type', 'name', 'content', 'ttl', 'proxied']).default('type'),
  direction: z.enum(['asc', 'desc']).default('asc'),
  match: z.enum(['any', 'all']).default('all'),
  type: z.string().optional(),
  name: z.string().toLowerCase().optional(),
  'name.exact': z.string().toLowerCase().optional(),
  content: z.string().optional(),
  proxied: z.stringbool().optional(),
  comment: z.string().optional(),
  'comment.exact': z.string().optional(),
  'comment.contains': z.string().optional(),
  'comment.startswith': z.string().optional(),
  'comment.endswith': z.string().optional(),
  'comment.present': z.string().optional(),
  'comment.absent': z.string().optional(),
});
type Query = z.infer<typeof query>;

type Filters = Omit<Query, 'page' | 'per_page' | 'order' | 'direction' | 'match'>;

/** Whether a record matches a filter's value. Comments are compared case-insensitively. */
const FILTERS: { [Name in keyof Filters]-?: (record: EmulatedRecord, value: string) => boolean } = {
  type: (record, value) => record.type === value,
  name: (record, value) => record.name === value,
  'name.exact': (record, value) => record.name === value,
  content: (record, value) => record.content === value,
  proxied: (record, value) => String(record.proxied) === value,
  comment: (record, value) => commentOf(record) === value.toLowerCase(),
  'comment.exact': (record, value) => commentOf(record) === value.toLowerCase(),
  'comment.contains': (record, value) => commentOf(record).includes(value.toLowerCase()),
  'comment.startswith': (record, value) => commentOf(record).startsWith(value.toLowerCase()),
  'comment.endswith': (record, value) => commentOf(record).endsWith(value.toLowerCase()),
  'comment.present': (record) => commentOf(record) !== '',
  'comment.absent': (record) => commentOf(record) === '',
};

function commentOf({ comment = '' }: EmulatedRecord): string {
  return comment.toLowerCase();
}

/** Page number and page size of a query with the default order and no filters; `null` for any other query. */
export function plainPage(raw: unknown): { number: number; perPage: number } | null {
  const plain = z.strictObject({ page: query.shape.page, per_page: query.shape.per_page }).safeParse(raw);
  return plain.success ? { number: plain.data.page, perPage: plain.data.per_page } : null;
}

/** The name that every record in the result must have; `null` if the query doesn't restrict it. */
export function onlyName(raw: unknown): string | null {
  const { data } = query.safeParse(raw);
  return data?.match === 'all' ? (data['name.exact'] ?? data.name ?? null) : null;
}

/** All matching records in the order asked for, with the number and size of the page asked for. */
export function selectRecords(records: readonly EmulatedRecord[], raw: unknown) {
  const parsed = query.safeParse(raw);
  if (!parsed.success) throw new ApiError('invalidRecord', 'Invalid list parameters.');
  const { page, per_page: perPage, order, direction, match, ...filters } = parsed.data;
  const tests = Object.entries(filters).map(
    ([name, value]) =>
      (record: EmulatedRecord) =>
        FILTERS[name as keyof Filters](record, String(value)), // Object.entries forgets the key type
  );
  const selected = records.filter(
    (record) =>
      tests.length === 0 ||
      (match === 'any' ? tests.some((test) => test(record)) : tests.every((test) => test(record))),
  );
  const sign = direction === 'asc' ? 1 : -1;
  // The records come ordered by type, name and content. Ties keep that order, so pages never overlap.
  const sorted = selected.toSorted((a, b) => (a[order] < b[order] ? -sign : a[order] > b[order] ? sign : 0));
  return { records: sorted, page, perPage };
}
