import { z } from 'zod';
import { containerLog, logFilters } from '../../gitops/report/container-logs.ts';

const DAY_MS = 86_400_000;
/** The longest time that one search may cover. */
const MOST_DAYS = 31;

const logView = containerLog.meta({
  id: 'ContainerLog',
  description: 'a line that the tag server has printed, without bodies and without what may be personal',
});

const time = z.iso.datetime({ offset: true });

export const containerLogsQuery = z
  .strictObject({
    from: time.optional().meta({ description: 'from this time on; default: 24 hours before `to`' }),
    to: time.optional().meta({ description: 'before this time; default: now' }),
    ...logFilters,
    limit: z.coerce.number().int().min(1).max(1_000).default(50),
    cursor: z.string().max(200).optional().meta({ description: '`next` of the previous page' }),
  })
  .refine(
    ({ from, to }) => {
      if (from === undefined) return true;
      const span = (to === undefined ? Date.now() : Date.parse(to)) - Date.parse(from);
      return span <= MOST_DAYS * DAY_MS && (to === undefined || span > 0);
    },
    { path: ['from'], message: `must be before \`to\`, by at most ${MOST_DAYS} days` },
  );

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
