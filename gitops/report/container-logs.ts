import { z } from 'zod';

/**
 * `tag`: JSON in the templates' common shape. `refusal`: by the policy script. `dropped`: a count of lines not kept.
 */
const LOG_KINDS = ['tag', 'text', 'refusal', 'dropped'] as const;
const LOG_LEVELS = ['info', 'warning', 'error'] as const;
const LOG_STREAMS = ['stdout', 'stderr'] as const;

/** A line that a site's container has printed, without what may be personal (docs/logs.md, What is kept). */
export const containerLog = z.object({
  id: z.string().meta({ description: 'ids of a container’s lines grow as the lines arrive' }),
  time: z.iso.datetime(),
  source: z.string().meta({ description: 'which of the containers: `processing/0`, `preview/0`' }),
  stream: z.enum(LOG_STREAMS),
  level: z.enum(LOG_LEVELS),
  kind: z.enum(LOG_KINDS).meta({
    description:
      '`tag`: in the common JSON shape of templates; `refusal`: the policy script refused a template; `dropped`: lines were not kept; the member `dropped` counts them',
  }),
  requestId: z.uuid().nullable().meta({
    description: '`TraceId`: the id of the edge’s request that the line belongs to',
  }),
  name: z.string().nullable().meta({ description: '`Name`: of the tag, or of the tag server’s client' }),
  type: z.enum(['Request', 'Response', 'Message', 'other']).nullable(),
  eventName: z.string().nullable(),
  requestMethod: z.string().nullable(),
  requestUrl: z
    .string()
    .nullable()
    .meta({ description: 'without its query; `*` replaces a part that may be an id' }),
  responseStatusCode: z.number().int().nullable(),
  message: z.string().nullable().meta({
    description: '`Message`, `Reason`, or a line that isn’t JSON; `[…]` replaces what was removed',
  }),
  permission: z.string().nullable().meta({ description: 'which permission the policy script refused' }),
  dropped: z.number().int().nullable().meta({ description: 'how many lines before this one were not kept' }),
});
export type ContainerLog = z.output<typeof containerLog>;

export const logFilters = {
  q: z.string().min(1).max(200).optional().meta({ description: 'part of the text, ignoring case' }),
  requestId: z
    .uuid()
    .toLowerCase()
    .optional()
    .meta({ description: 'only lines that belong to this request of the edge' }),
  level: z.enum(LOG_LEVELS).optional(),
  stream: z.enum(LOG_STREAMS).optional(),
  kind: z.enum(LOG_KINDS).optional(),
};
export type LogFilter = { readonly [Name in keyof typeof logFilters]?: z.output<(typeof logFilters)[Name]> };

/** A page of a site's lines, the newest first. */
export const containerLogsPage = z.object({
  logs: z.array(containerLog),
  next: z.string().nullable(),
  since: z.iso.datetime().nullable(),
});

/** Lines after a position, in the order of their arrival. */
export const newerContainerLogs = z.object({
  logs: z.array(containerLog),
  /** The id after which to ask next. */
  position: z.string(),
  /** The number of lines after the given position that are not kept any more; `null`: an unknown number. */
  missed: z.number().int().nullable(),
});

/** What policy scripts refused, once a day for each site, template and permission. */
export const policyRefusals = z.object({
  refusals: z.array(
    z.object({
      site: z.string(),
      day: z.iso.date(),
      permission: z.string(),
      name: z.string().nullable(),
      at: z.iso.datetime(),
    }),
  ),
});
export type PolicyRefusal = z.output<typeof policyRefusals>['refusals'][number];
