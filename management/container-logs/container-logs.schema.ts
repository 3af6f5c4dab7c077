import { z } from 'zod';
import { containerLog, logFilters } from '../../gitops/report/container-logs.ts';
import { isSearchRange, SEARCH_RANGE, searchTimes } from '../view/search-times.ts';

const logView = containerLog.meta({
  id: 'ContainerLog',
  description: 'a line that the tag server has printed, without bodies and without what may be personal',
});

export const containerLogsQuery = z
  .strictObject({
    ...searchTimes,
    ...logFilters,
    limit: z.coerce.number().int().min(1).max(1_000).default(50),
    cursor: z.string().max(200).optional().meta({ description: '`next` of the previous page' }),
  })
  .refine(isSearchRange, SEARCH_RANGE);

export const containerLogsView = z.object({
  logs: z.array(logView).meta({ description: 'the newest first' }),
  next: z.string().nullable().meta({
    description: 'pass it as `cursor`; null: this is the last page. A page may have fewer lines than `limit`',
  }),
  since: z.iso
    .datetime()
    .nullable()
    .meta({ description: 'time of the oldest line that is kept; null: none is' }),
});

export const liveLogsQuery = z.strictObject(logFilters);
export type LiveLogsQuery = z.output<typeof liveLogsQuery>;
export const liveLogsHeaders = z.looseObject({
  'last-event-id': z
    .string()
    .regex(/^\d{1,15}$/)
    .optional()
    .meta({ description: 'id of a line; the stream begins after it' }),
});
