import {
  daysFromTo,
  sumUsage,
  type Usage,
  type UsageDays,
  type UsageItem,
  type UsageNames,
  type UsageSums,
  zoneDay,
} from '../../data/usage.ts';
import { bytes, count, dayName, dollars, plural } from '../../text/format.ts';

export type UsageGroup = 'day' | 'container' | 'client';

interface Line {
  readonly key: string;
  readonly name: string;
  readonly href?: string;
  /** `null`: nothing is known of it. */
  readonly sums: UsageSums | null;
  readonly note: string | null;
}

const KEYS = {
  container: (item: UsageItem) => item.containerId,
  client: (item: UsageItem) => item.clientId,
} as const;

/** Usage by day, container or client, with its price and what exceeded a soft limit. */
export function UsageTable({
  usage,
  days,
  group,
  nameOf,
}: {
  usage: Usage;
  days: UsageDays;
  group: UsageGroup;
  nameOf: UsageNames;
}) {
  const lines = group === 'day' ? dayLines(usage, days) : groupLines(usage, group, nameOf);
  const most = Math.max(1, ...lines.map(({ sums }) => sums?.requests ?? 0));
  return (
    <div class="table-box">
      <table class="list usage">
        <thead>
          <tr>
            <th scope="col">{group === 'day' ? 'Day' : group === 'client' ? 'Client' : 'Container'}</th>
            <td class="wide-only" />
            <th scope="col" class="right">
              Requests
            </th>
            <th scope="col" class="right wide-only">
              Events
            </th>
            <th scope="col" class="right wide-only">
              Received
            </th>
            <th scope="col" class="right wide-only">
              Sent
            </th>
            <th scope="col" class="right">
              List price
            </th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <Row key={line.key} line={line} most={most} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ line: { name, href, sums, note }, most }: { line: Line; most: number }) {
  return (
    <tr class={sums === null ? 'unknown' : ''}>
      <th scope="row">
        {href === undefined ? (
          name
        ) : (
          <a href={href} data-row>
            {name}
          </a>
        )}
        {note !== null && <span class="dim small note">{note}</span>}
        {sums !== null && sums.warned > 0 && (
          <span class="state warn" title="The limit stops nothing">
            Over the soft limit
          </span>
        )}
      </th>
      {sums === null ? (
        <>
          <td colSpan={4} class="wide-only" />
          <td colSpan={2} class="right dim">
            not known
          </td>
        </>
      ) : (
        <>
          <td class="bar-cell wide-only">
            <svg class="bar-line" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
              <rect width={(sums.requests / most) * 100} height="8" />
            </svg>
          </td>
          <td class="right">{count(sums.requests)}</td>
          <td class="right wide-only">{count(sums.events)}</td>
          <td class="right wide-only">{bytes(sums.bytesIn)}</td>
          <td class="right wide-only">{bytes(sums.bytesOut)}</td>
          <td class="right">{dollars(sums.listPrice)}</td>
        </>
      )}
    </tr>
  );
}

/**
 * Every day up to today, the newest first. A day of which nothing is known isn't shown as zero; consecutive days of
 * that kind are one line.
 */
function dayLines({ items, gaps }: Usage, { from, to, timeZone }: UsageDays): Line[] {
  const byDay = Map.groupBy(items, ({ day }) => day);
  const today = zoneDay(Date.now(), timeZone);
  const lines: Line[] = [];
  let unknown: string[] = [];
  const flush = () => {
    const [last, first] = [unknown[0], unknown.at(-1)];
    if (last === undefined || first === undefined) return;
    const name = first === last ? dayName(last) : `${dayName(first)} to ${dayName(last)}`;
    lines.push({ key: last, name, sums: null, note: first === last ? null : `${unknown.length} days` });
    unknown = [];
  };
  for (const day of daysFromTo(from, to < today ? to : today).reverse()) {
    const own = byDay.get(day);
    const isGap = gaps.has(day);
    if (own === undefined && isGap) {
      unknown.push(day);
      continue;
    }
    flush();
    const note = isGap ? 'incomplete: at least this much' : day === today ? 'so far' : null;
    lines.push({ key: day, name: dayName(day), sums: sumUsage(own ?? []), note });
  }
  flush();
  return lines;
}

/** The one with most requests first. */
function groupLines({ items, gaps }: Usage, group: 'container' | 'client', nameOf: UsageNames): Line[] {
  const isGap = gaps.size > 0;
  return [...Map.groupBy(items, KEYS[group])]
    .map(([id, own]) => {
      const sums = sumUsage(own);
      const days = plural(
        sums.warned,
        group === 'client' ? 'container-day' : 'day',
        group === 'client' ? 'container-days' : 'days',
      );
      return {
        key: id,
        name: nameOf[group](id),
        href: group === 'client' ? `/console/clients/${id}` : `/console/containers/${id}`,
        sums,
        note: [...(isGap ? ['partial'] : []), ...(sums.warned > 0 ? [`on ${days}`] : [])].join('; ') || null,
      };
    })
    .toSorted((a, b) => b.sums.requests - a.sums.requests);
}
