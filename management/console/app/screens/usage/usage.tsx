import { useLocation } from 'preact-iso';
import { useQuery } from '../../data/query.ts';
import { shownClient } from '../../data/shown-client.ts';
import {
  dayAfter,
  readUsage,
  sumUsage,
  type Usage,
  type UsageDays,
  type UsageNames,
  usageCsv,
  zoneDay,
} from '../../data/usage.ts';
import { ContainerPicker } from '../../parts/container-picker.tsx';
import { Copy } from '../../parts/marks.tsx';
import { Page } from '../../parts/page.tsx';
import { Empty, Known } from '../../parts/states.tsx';
import { bytes, count, dollars, plural, timeZone } from '../../text/format.ts';
import { useNames } from './names.ts';
import { type UsageGroup, UsageTable } from './table.tsx';

const GROUPS = [
  { value: 'day', name: 'By day' },
  { value: 'container', name: 'By container' },
  { value: 'client', name: 'By client' },
] as const;
const DAY = /^\d{4}-\d\d-\d\d$/;

/** What was used at the edge, by day, container or client, and what it costs at list prices. */
export default function UsageScreen() {
  const { query, route } = useLocation();
  const days = daysOf(query);
  const group = GROUPS.find(({ value }) => value === query.by)?.value ?? 'day';
  const { container } = query;
  const client = query.client ?? shownClient.value;
  const asked = { ...(client ? { client } : {}), ...(container ? { container } : {}) };
  const usage = useQuery(`usage ${JSON.stringify([days, asked])}`, () => readUsage(days, asked));
  const nameOf = useNames();
  const change = (changes: Readonly<Record<string, string | undefined>>) => {
    const next = new URLSearchParams(query);
    for (const [name, value] of Object.entries(changes)) {
      if (value) next.set(name, value);
      else next.delete(name);
    }
    const text = next.toString();
    route(`/console/usage${text === '' ? '' : `?${text}`}`);
  };
  return (
    <Page
      title="Usage"
      sub={
        <>
          <span>
            Days of the time zone <span class="strong">{days.timeZone}</span>
          </span>
          <span>List prices of Cloudflare, in US dollars; what a plan includes is not subtracted</span>
        </>
      }
      actions={
        <fieldset class="segments">
          <legend class="hidden">Group</legend>
          {GROUPS.map(({ value, name }) => (
            <button
              key={value}
              type="button"
              aria-pressed={group === value}
              onClick={() => change({ by: value === 'day' ? undefined : value })}
            >
              {name}
            </button>
          ))}
        </fieldset>
      }
    >
      <UsageFilters days={days} container={container} change={change} />
      <Known query={usage} rows={10}>
        {(known) => (
          <>
            <Totals usage={known} />
            <Notices usage={known} />
            {known.items.length === 0 && known.gaps.size === 0 ? (
              <Empty title="No request in these days">
                <p>Usage appears here once pages load the snippet of a container.</p>
              </Empty>
            ) : (
              <UsageBody usage={known} days={days} group={group} nameOf={nameOf} />
            )}
          </>
        )}
      </Known>
    </Page>
  );
}

function UsageBody({
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
  return (
    <>
      <div class="list-head">
        <span class="grow dim small">
          {plural(usage.items.length, 'row')}, one for each container and day
        </span>
        <Copy text={usageCsv(usage.items, nameOf)} what="as CSV" name="Copy as CSV" style="" />
      </div>
      <UsageTable usage={usage} days={days} group={group} nameOf={nameOf} />
    </>
  );
}

function Totals({ usage: { items, gaps } }: { usage: Usage }) {
  const { requests, events, bytesIn, bytesOut, listPrice } = sumUsage(items);
  const isLeast = gaps.size > 0;
  return (
    <ul class="tiles" aria-label="Sums of these days">
      {[
        [count(requests), 'requests'],
        [count(events), 'events'],
        [`${bytes(bytesIn)} / ${bytes(bytesOut)}`, 'received / sent'],
        [dollars(listPrice), 'list price'],
      ].map(([number, name]) => (
        <li key={name}>
          <div class="tile">
            <span class="number">
              {isLeast && <span title="At least: not everything is known">≥ </span>}
              {number}
            </span>
            <span class="dim">{name}</span>
          </div>
        </li>
      ))}
    </ul>
  );
}

function Notices({ usage: { items, gaps, isCut } }: { usage: Usage }) {
  const over = items.filter(({ warnings }) => warnings.length > 0);
  const limits = [...new Set(over.flatMap(({ warnings }) => warnings))].join(' and ');
  return (
    <>
      {over.length > 0 && (
        <p class="notice warn" role="status">
          The soft limit of {limits} was exceeded {over.length === 1 ? 'once' : `${count(over.length)} times`}
          . Nothing is stopped; the operator sets the limits.
        </p>
      )}
      {gaps.size > 0 && (
        <p class="dim small">
          {plural(gaps.size, 'day is', 'days are')} not completely known: nothing was collected then, or the
          sums of that time are no longer kept. The real sums may be greater.
        </p>
      )}
      {isCut && (
        <p class="notice warn" role="status">
          There are more rows than this page reads. Choose a client, a container or fewer days to see all.
        </p>
      )}
    </>
  );
}

function UsageFilters({
  days,
  container = '',
  change,
}: {
  days: UsageDays;
  container?: string | undefined;
  change: (changes: Readonly<Record<string, string | undefined>>) => void;
}) {
  const zones = [...new Set(['UTC', timeZone()])];
  return (
    <search class="filters">
      <ContainerPicker
        value={container === '' ? null : container}
        set={(id) => change({ container: id ?? undefined })}
      />
      <span class="between">
        <Day name="First day" value={days.from} set={(from) => change({ from, to: days.to })} />
        <span class="dim">to</span>
        <Day name="Last day" value={days.to} set={(to) => change({ from: days.from, to })} />
      </span>
      <select
        aria-label="Time zone"
        value={days.timeZone}
        onChange={({ currentTarget }) => change({ zone: currentTarget.value })}
      >
        {zones.map((zone) => (
          <option key={zone} value={zone}>
            {zone}
          </option>
        ))}
        {!zones.includes(days.timeZone) && <option value={days.timeZone}>{days.timeZone}</option>}
      </select>
    </search>
  );
}

function Day({ name, value, set }: { name: string; value: string; set: (day: string) => void }) {
  return (
    <input
      type="date"
      aria-label={name}
      value={value}
      required
      onChange={({ currentTarget }) => {
        if (DAY.test(currentTarget.value)) set(currentTarget.value);
      }}
    />
  );
}

/** The last 30 days, unless the address has others. */
function daysOf({ from = '', to = '', zone = 'UTC' }: Readonly<Record<string, string>>): UsageDays {
  const known = isZone(zone) ? zone : 'UTC';
  const today = zoneDay(Date.now(), known);
  const last = DAY.test(to) ? to : today;
  return { from: DAY.test(from) && from <= last ? from : dayAfter(last, -29), to: last, timeZone: known };
}

function isZone(name: string): boolean {
  try {
    return name !== '' && new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}
