import { z } from 'zod';
import type { ContainerLog } from '../report/container-logs.ts';
import { PERMISSIONS, scrubText, shownUrl } from './scrub.ts';

/** What is kept of a line's text. */
export type ReadLine = Omit<ContainerLog, 'id' | 'time' | 'source' | 'stream'>;

/** Which lines are kept: all, or only those of templates, refusals and counts of dropped lines. */
export type KeptLines = 'all' | 'json';

/**
 * The members that are read from a line in the common shape of templates; an invalid one counts as missing. All other
 * members, such as `RequestBody`, `ResponseBody` and `ResponseHeaders`, are not read. Source: the community's standard
 * "GTMS-3, Server Templates Logging".
 */
const shape = z.object({
  Name: z.string().optional().catch(undefined),
  Type: z.string().optional().catch(undefined),
  TraceId: z.string().optional().catch(undefined),
  EventName: z.string().optional().catch(undefined),
  RequestMethod: z.string().optional().catch(undefined),
  RequestUrl: z.string().optional().catch(undefined),
  ResponseStatusCode: z.coerce.number().int().min(100).max(599).optional().catch(undefined),
  Message: z.unknown().optional(),
  Reason: z.unknown().optional(),
});

const LONGEST_NAME = 80;
const TYPES = ['Request', 'Response', 'Message'] as const;
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];
/** GA4's own rule for names of events. */
const EVENT_NAME = /^[A-Za-z][A-Za-z0-9_]{0,39}$/;
/** Found in ids and tokens more often than in names of events. */
const LIKE_AN_ID = /\d{4}|[A-Za-z]\d+[A-Za-z]/;
const uuid = z.uuid();
const REFUSED =
  /\b(?:polic(?:y|ies)|reject(?:s|ed)?|refuse[sd]?|denie[sd]|prohibit(?:s|ed)?|not (?:permitted|allowed))\b/i;

const NOTHING: ReadLine = {
  level: 'info',
  kind: 'text',
  requestId: null,
  name: null,
  type: null,
  eventName: null,
  requestMethod: null,
  requestUrl: null,
  responseStatusCode: null,
  message: null,
  permission: null,
  dropped: null,
};

/** What is kept of a line; `null`: nothing. */
export function readLine(text: string, stream: 'stdout' | 'stderr', kept: KeptLines): ReadLine | null {
  const line = text.trim();
  if (line === '') return null;
  const members = line.startsWith('{') ? membersOf(line) : null;
  if (members !== null) return readMembers(members, stream);
  const permission = refusedPermission(line);
  if (permission !== null) {
    const name = /^Template refused: ([^,]{1,80}),/.exec(line)?.[1] ?? null;
    const refusal = { kind: 'refusal', level: 'error', permission, message: scrubText(line) } as const;
    return { ...NOTHING, ...refusal, name: name === null ? null : shownName(name) };
  }
  if (kept === 'json') return null;
  return { ...NOTHING, level: stream === 'stderr' ? 'error' : 'info', message: scrubText(line) };
}

/** The line that says how many lines were not kept, and why. */
export function droppedLine(count: number, why: string): ReadLine {
  return { ...NOTHING, kind: 'dropped', level: 'warning', dropped: count, message: why };
}

/** The object of a line, if it has a member of the common shape. */
function membersOf(line: string): z.output<typeof shape> | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return null;
  }
  const members = shape.safeParse(parsed).data;
  return members !== undefined && Object.values(members).some((value) => value !== undefined)
    ? members
    : null;
}

function readMembers(members: z.output<typeof shape>, stream: 'stdout' | 'stderr'): ReadLine {
  const { Name, Type, TraceId, EventName, RequestMethod, RequestUrl, Message, Reason } = members;
  const message = [Message, Reason].flatMap((value) => shownMessage(value)).join('; ') || null;
  const permission = typeof Message === 'string' ? refusedPermission(Message) : null;
  const status = members.ResponseStatusCode ?? null;
  return {
    level:
      stream === 'stderr' || permission !== null
        ? 'error'
        : status !== null && status >= 400
          ? 'warning'
          : 'info',
    kind: permission === null ? 'tag' : 'refusal',
    // In lower case, as the edge writes the id of the request: the search compares text.
    requestId: uuid.safeParse(TraceId).data?.toLowerCase() ?? null,
    name: Name === undefined ? null : shownName(Name),
    type: Type === undefined ? null : (TYPES.find((one) => one === Type) ?? 'other'),
    eventName: EventName === undefined ? null : isEventName(EventName) ? EventName : 'other',
    requestMethod:
      RequestMethod === undefined ? null : METHODS.includes(RequestMethod) ? RequestMethod : 'other',
    requestUrl: RequestUrl === undefined ? null : (shownUrl(RequestUrl) ?? '[url]'),
    responseStatusCode: status,
    message,
    permission,
    dropped: null,
  };
}

function isEventName(text: string): boolean {
  return EVENT_NAME.test(text) && !LIKE_AN_ID.test(text);
}

function shownName(name: string): string {
  return scrubText(name).slice(0, LONGEST_NAME);
}

function shownMessage(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  return [typeof value === 'string' ? scrubText(value) : '[data]'];
}

/** The refused permission, if a text names a permission and says that something was refused. */
function refusedPermission(text: string): string | null {
  if (text.length > 2_000 || !REFUSED.test(text)) return null;
  return text.match(/[a-z]+(?:_[a-z]+)+/g)?.find((word) => PERMISSIONS.has(word)) ?? null;
}
