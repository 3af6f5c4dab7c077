const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const ABSOLUTE = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' });
const UNITS = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

/** Such as `3 minutes ago`. */
export function ago(time: string | number, now = Date.now()): string {
  const seconds = (new Date(time).getTime() - now) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return RELATIVE.format(Math.trunc(seconds / size), unit);
  }
  return Math.abs(seconds) < 10 ? 'just now' : RELATIVE.format(Math.trunc(seconds), 'second');
}

/** With seconds and the time zone. */
export function absolute(time: string | number): string {
  return ABSOLUTE.format(new Date(time));
}

const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** The local time to a millisecond, such as `14:03:07.120`; on other days than today, with the date before it. */
export function clockTime(time: string, now = new Date()): string {
  const at = new Date(time);
  // `Intl` takes ten times as long, and a live list shows a time in each of its rows.
  const [hours, minutes, seconds] = [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) =>
    String(part).padStart(2, '0'),
  );
  const clock = `${hours}:${minutes}:${seconds}.${String(at.getMilliseconds()).padStart(3, '0')}`;
  return at.toDateString() === now.toDateString() ? clock : `${DAY.format(at)} ${clock}`;
}

/** The time zone of the browser, such as `Europe/Berlin`. */
export function timeZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** `850 ms`, `1.2 s`. */
export function milliseconds(value: number): string {
  return value < 1_000 ? `${Math.round(value)} ms` : `${(value / 1_000).toFixed(1)} s`;
}

/** Octets as people read them: `512 B`, `1.5 kB`. Multiples of 1,000. */
export function bytes(octets: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = octets < 1_000 ? 0 : Math.min(4, Math.floor(Math.log10(octets) / 3));
  const value = octets / 1_000 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[power]}`;
}

const CALENDAR_DAY = new Intl.DateTimeFormat('en-GB', {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  timeZone: 'UTC',
});

/** A date without a time, such as `Mon, 23 Nov 2026` of `2026-11-23`. */
export function dayName(day: string): string {
  return CALENDAR_DAY.format(Date.parse(day));
}

/** US dollars, with more decimals for small amounts: `$12.50`, `$0.00443`. */
export function dollars(amount: number): string {
  const digits =
    amount === 0 || amount >= 0.09995
      ? { minimumFractionDigits: 2, maximumFractionDigits: 2 }
      : { maximumSignificantDigits: 3 };
  return `$${amount.toLocaleString('en', digits)}`;
}

/** A fraction in percent, with a decimal below ten: `0.6 %`, `67 %`. */
export function percent(fraction: number): string {
  const value = fraction * 100;
  return `${value.toFixed(value === 0 || value >= 10 ? 0 : 1)} %`;
}

export function count(number: number): string {
  return number.toLocaleString('en');
}

/** `1 container`, `2 containers`. */
export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** `verification_failed` as `Verification failed`. */
export function words(code: string): string {
  const text = code
    .replaceAll('_', ' ')
    .replace(/\b(dns|tls|kv|url|api|csp)\b/g, (name) => name.toUpperCase())
    .replace(/([a-z])([A-Z])/g, (_all, a: string, b: string) => {
      return `${a} ${b.toLowerCase()}`;
    });
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const FIELDS: Readonly<Record<string, string>> = {
  clientId: 'Client',
  containerConfigB64: 'Container configuration',
  domains: 'Domain',
  siteId: 'Host name',
  webTagId: 'Web tag id',
  webTagIds: 'Web tag id',
};

/** The field of a request, such as `domains.1`, as forms label it: `Domain 2`. */
export function fieldName(path: string): string {
  const [first = '', ...inner] = path.split('.');
  if (first === 'webTagIds' && inner.length > 0) return `Web tag id of ${inner.join('.')}`;
  if (first === 'domains' && inner.length === 1)
    return inner[0] === '0' ? 'Domain' : `Domain ${Number(inner[0]) + 1}`;
  const steps = inner.map((step) => (/^\d+$/.test(step) ? String(Number(step) + 1) : words(step)));
  return [FIELDS[first] ?? words(first), ...steps].join(' › ');
}

/** A value of a manifest as people read it. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
