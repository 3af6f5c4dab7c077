import { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import type { ContainerLog, LogFilter } from '../report/container-logs.ts';
import type { StoredLine } from './segments.ts';
import type { SiteLog } from './site-log.ts';

const DAY_MS = 86_400_000;
/** Milliseconds after which a page ends, even if it isn't full. */
const BUDGET_MS = 2_000;

export interface LogQuery extends LogFilter {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export interface NewerQuery extends LogFilter {
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface LinePage {
  readonly logs: ContainerLog[];
  readonly next: string | null;
  readonly since: string | null;
}

export interface NewerLogs {
  readonly logs: ContainerLog[];
  readonly position: string;
  readonly missed: number | null;
}

/** A line's place in the order of time. Lines of the same time are in the order of arrival. */
interface Key {
  readonly at: number;
  readonly seq: number;
}
const cursorSchema = z.tuple([z.number().int(), z.number().int()]);

/** Reads the cursor of a page; `null`: the text is no cursor. */
export function readCursor(text: string): Key | null {
  try {
    const [at, seq] = cursorSchema.parse(JSON.parse(Buffer.from(text, 'base64url').toString()));
    return { at, seq };
  } catch {
    return null;
  }
}

/** A page of lines, the newest first. It may have fewer than `limit` lines and a next page. */
export async function searchPage(log: SiteLog, query: LogQuery, clock: Clock): Promise<LinePage> {
  const now = clock.date().getTime();
  const to = query.to === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(query.to);
  const from = query.from === undefined ? Math.min(to, now) - DAY_MS : Date.parse(query.from);
  const after = query.cursor === undefined ? null : readCursor(query.cursor);
  const before: Key = after ?? { at: to, seq: 0 };
  const { segments } = await log.segments();
  const asked = segments.filter((one) => one.to >= from && one.from <= before.at);
  const isAsked = textFilter(query);
  const endsAt = clock.now() + BUDGET_MS;
  let found: StoredLine[] = [];
  let reached: number | null = null;
  for (const [index, segment] of asked.entries()) {
    const worst = found[query.limit];
    if (worst !== undefined && Date.parse(worst.time) > segment.to) break;
    if (index > 0 && clock.now() > endsAt) {
      reached = segment.to;
      break;
    }
    const lines = (await log.read(segment, isAsked)).filter((line) => {
      const at = Date.parse(line.time);
      return at >= from && isBehind(keyOf(line), before) && isMatch(line, query);
    });
    found = [...found, ...lines].sort((a, b) => compare(keyOf(a), keyOf(b))).slice(0, query.limit + 1);
  }
  // A segment that was not read may have newer lines than those that were found.
  const certain = reached === null ? found : found.filter(({ time }) => Date.parse(time) > (reached ?? 0));
  const shown = certain.slice(0, query.limit);
  const last = shown.at(-1);
  const next =
    certain.length > query.limit && last !== undefined
      ? keyOf(last)
      : reached === null
        ? null
        : { at: reached, seq: Number.MAX_SAFE_INTEGER };
  const oldest = segments.reduce((time, one) => Math.min(time, one.from), Number.MAX_SAFE_INTEGER);
  return {
    logs: shown.map(present),
    next: next && Buffer.from(JSON.stringify([next.at, next.seq])).toString('base64url'),
    since: segments.length === 0 ? null : new Date(oldest).toISOString(),
  };
}

/** Lines after the id `after`, in the order of arrival. Without `after`, only the position of the newest line. */
export async function searchNewer(log: SiteLog, query: NewerQuery): Promise<NewerLogs> {
  const { segments, last } = await log.segments();
  const after = query.after === undefined ? last : Number(query.after);
  const position = (seq: number) => String(seq);
  if (after === last) return { logs: [], position: position(last), missed: 0 };
  // The id is from before everything was deleted, or of another host.
  if (after > last) return { logs: [], position: position(last), missed: null };
  const inOrder = segments.toSorted((a, b) => a.first - b.first).filter((one) => one.last > after);
  const first = inOrder[0]?.first ?? last + 1;
  const missed = Math.max(0, first - after - 1);
  const isAsked = textFilter(query);
  const logs: StoredLine[] = [];
  let reached = last;
  for (const segment of inOrder) {
    const lines = await log.read(segment, isAsked);
    logs.push(...lines.filter((line) => line.seq > after && line.seq <= last && isMatch(line, query)));
    if (logs.length > query.limit) {
      logs.splice(query.limit);
      reached = logs.at(-1)?.seq ?? last;
      break;
    }
  }
  return { logs: logs.map(present), position: position(reached), missed };
}

/** A quick test of a stored line's text. It accepts all lines that match, and may accept others. */
function textFilter({ requestId, q }: LogFilter): ((text: string) => boolean) | undefined {
  if (requestId !== undefined) return (text) => text.includes(requestId);
  if (q === undefined) return undefined;
  // JSON escapes some characters of a text.
  const needle = JSON.stringify(q.toLowerCase()).slice(1, -1);
  return (text) => text.toLowerCase().includes(needle);
}

function isMatch(line: StoredLine, { requestId, q, level, stream, kind }: LogFilter): boolean {
  if (requestId !== undefined && line.requestId !== requestId) return false;
  if (level !== undefined && line.level !== level) return false;
  if (stream !== undefined && line.stream !== stream) return false;
  if (kind !== undefined && line.kind !== kind) return false;
  if (q === undefined) return true;
  const { name, type, eventName, requestMethod, requestUrl, responseStatusCode, message, permission } = line;
  const text = [name, type, eventName, requestMethod, requestUrl, responseStatusCode, message, permission];
  return text.some((one) => one !== null && String(one).toLowerCase().includes(q.toLowerCase()));
}

function present({ seq, position: _, ...line }: StoredLine): ContainerLog {
  return { id: String(seq), ...line };
}

function keyOf({ time, seq }: StoredLine): Key {
  return { at: Date.parse(time), seq };
}

/** The newest first. */
function compare(a: Key, b: Key): number {
  return b.at - a.at || b.seq - a.seq;
}

function isBehind(key: Key, before: Key): boolean {
  return compare(before, key) < 0;
}
