import type { components } from '../../../../base/client/index.ts';
import { csvLine } from '../../../http/export-forms.ts';
import { api } from './api.ts';

export type UsageItem = components['schemas']['Usage'];

/** The days that are shown, both included, as `YYYY-MM-DD` of the time zone. */
export interface UsageDays {
  readonly from: string;
  readonly to: string;
  readonly timeZone: string;
}

export interface Usage {
  readonly items: readonly UsageItem[];
  /** Days of which not everything is known. Time still to come doesn't count. */
  readonly gaps: ReadonlySet<string>;
  /** There are more rows than were read. */
  readonly isCut: boolean;
}

const OF_PAGE = 200;
const MOST_PAGES = 50;
/** How far behind the collector may be while all is well, milliseconds. */
const BEHIND_MS = 15 * 60_000;

/** Reads what was used, at most 10,000 rows. */
export async function readUsage(
  days: UsageDays,
  { client, container }: { client?: string; container?: string },
): Promise<Usage> {
  const items: UsageItem[] = [];
  let missing: readonly { from: string; to: string }[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { data } = await api.get('/usage', {
      params: {
        query: {
          ...days,
          limit: OF_PAGE,
          ...(client === undefined ? {} : { client }),
          ...(container === undefined ? {} : { container }),
          ...(cursor === undefined ? {} : { cursor }),
        },
      },
    });
    items.push(...data.items);
    missing = data.missing;
    if (data.next === null) return { items, gaps: gapsOf(missing, days), isCut: false };
    cursor = data.next;
  }
  return { items, gaps: gapsOf(missing, days), isCut: true };
}

/** The days that these times touch. Times in the future, or too recent to be collected yet, don't count. */
function gapsOf(missing: readonly { from: string; to: string }[], { timeZone, ...span }: UsageDays) {
  const known = Date.now() - BEHIND_MS;
  const touched = missing.flatMap(({ from, to }) => {
    const end = Math.min(Date.parse(to), known);
    if (Date.parse(from) >= end) return [];
    return daysFromTo(zoneDay(Date.parse(from), timeZone), zoneDay(end - 1, timeZone));
  });
  return new Set(touched.filter((day) => day >= span.from && day <= span.to));
}

/** The day of a time in a zone, as `YYYY-MM-DD`. */
export function zoneDay(time: number, timeZone: string): string {
  // Swedish dates have this form.
  return new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' }).format(time);
}

/** All days from one to another, both included; at most 500, which is more than the API answers at once. */
export function daysFromTo(from: string, to: string): string[] {
  const days: string[] = [];
  for (let day = from; day <= to && days.length < 500; day = dayAfter(day, 1)) days.push(day);
  return days;
}

export function dayAfter(day: string, number: number): string {
  return new Date(Date.parse(day) + number * 86_400_000).toISOString().slice(0, 10);
}

/** The sums of rows. */
export interface UsageSums {
  readonly requests: number;
  readonly events: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** US dollars. */
  readonly listPrice: number;
  /** Rows (one container on one day each) that exceeded a soft limit. */
  readonly warned: number;
}

export function sumUsage(items: readonly UsageItem[]): UsageSums {
  const of = (name: 'requests' | 'events' | 'bytesIn' | 'bytesOut' | 'listPrice') =>
    items.reduce((sum, item) => sum + item[name], 0);
  return {
    requests: of('requests'),
    events: of('events'),
    bytesIn: of('bytesIn'),
    bytesOut: of('bytesOut'),
    listPrice: of('listPrice'),
    warned: items.filter(({ warnings }) => warnings.length > 0).length,
  };
}

/** The names of clients and containers by their ids. */
export interface UsageNames {
  client(id: string): string;
  container(id: string): string;
}

const CSV_COLUMNS = [
  'day',
  'client',
  'container',
  'requests',
  'events',
  'bytesIn',
  'bytesOut',
  'listPrice',
  'warnings',
];

/** All rows as CSV. */
export function usageCsv(items: readonly UsageItem[], nameOf: UsageNames): string {
  const lines = items.map((item) => [
    item.day,
    nameOf.client(item.clientId),
    nameOf.container(item.containerId),
    item.requests,
    item.events,
    item.bytesIn,
    item.bytesOut,
    item.listPrice,
    item.warnings.join(' '),
  ]);
  return [CSV_COLUMNS, ...lines].map(csvLine).join('');
}
