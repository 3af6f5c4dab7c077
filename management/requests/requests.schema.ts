import { z } from 'zod';
import { probesQuery } from '../view/probes.ts';
import { isSearchRange, SEARCH_RANGE, searchTimes } from '../view/search-times.ts';
import { recordedRequest } from './rows/record.ts';

const requestView = recordedRequest
  .extend({ id: z.string().meta({ description: 'the same for every copy of the record' }) })
  .meta({ id: 'EdgeRequest', description: 'a request to the edge, without an address or id of the visitor' });

const filters = {
  route: z.string().max(300).optional().meta({ description: 'the pattern: `/c/:token.js`' }),
  status: z
    .string()
    .regex(/^[1-5](?:\d\d|xx)$/)
    .optional()
    .meta({ description: 'a status or a class of them: `404`, `5xx`' }),
  cache: z.enum(['hit', 'miss', 'stale', 'bypass']).optional(),
  error: z.string().max(100).optional(),
  requestId: z.string().max(200).optional(),
  method: z.string().max(20).optional(),
  country: z.string().max(20).optional(),
  probes: probesQuery,
};

const search = {
  ...searchTimes,
  ...filters,
  limit: z.coerce.number().int().min(1).max(1_000).default(50),
  cursor: z.string().max(2_000).optional().meta({ description: '`next` of the previous page' }),
  format: z
    .enum(['json', 'ndjson', 'csv'])
    .default('json')
    .meta({ description: '`ndjson`, `csv`: all rows that match, without pages' }),
};

export const containerRequestsQuery = z.strictObject(search).refine(isSearchRange, SEARCH_RANGE);
export const requestsQuery = z
  .strictObject({ ...search, client: z.uuid().optional(), container: z.uuid().optional() })
  .refine(isSearchRange, SEARCH_RANGE);
export type RequestsQuery = z.output<typeof containerRequestsQuery>;

export const requestsPage = z.object({
  requests: z.array(requestView).meta({ description: 'the newest first' }),
  next: z.string().nullable().meta({
    description: 'pass it as `cursor`; null: this is the last page. A page may have fewer rows than `limit`',
  }),
  missing: z
    .array(z.iso.date())
    .meta({ description: 'days (UTC) whose records aren’t wholly searchable yet; ask again in a moment' }),
});

export const liveHeaders = z.looseObject({
  'last-event-id': z
    .string()
    .max(300)
    .optional()
    .meta({ description: 'id of a row; the stream begins after it, or with the event `gap` if it is gone' }),
});
export const liveQuery = z.strictObject(filters);
