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

/** A value of a manifest as people read it. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
