/** The scripts that a label may be written in, each alone or with what is listed with it. Others stay A-labels. */
const SCRIPTS = [
  ...['Latin', 'Greek', 'Cyrillic', 'Armenian', 'Georgian', 'Hebrew', 'Arabic', 'Devanagari', 'Bengali'],
  ...['Gujarati', 'Gurmukhi', 'Tamil', 'Telugu', 'Kannada', 'Malayalam', 'Sinhala', 'Thai', 'Lao', 'Khmer'],
  ...['Ethiopic'],
].map((script) => `\\p{Script=${script}}`);
const OF_ONE_SCRIPT = [
  ...SCRIPTS,
  '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}',
  '\\p{Script=Han}\\p{Script=Hangul}',
].map((scripts) => new RegExp(`^[${scripts}\\p{Script=Common}\\p{Script=Inherited}]+$`, 'u'));

const DIGITS = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** A host name as people read it: in Unicode, but a label of mixed scripts, which can imitate another one, as it is. */
export function shownHost(host: string): string {
  return host.includes('xn--') ? host.split('.').map(shownLabel).join('.') : host;
}

/** A text for people with its host names in Unicode. */
export function shownHostsIn(text: string): string {
  if (!text.includes('xn--')) return text;
  return text.replace(/(?:[a-z0-9-]+\.)*xn--[a-z0-9-]+(?:\.[a-z0-9-]+)*/g, shownHost);
}

function shownLabel(label: string): string {
  const text = label.startsWith('xn--') ? decoded(label.slice(4)) : null;
  if (text === null || !OF_ONE_SCRIPT.some((script) => script.test(text))) return label;
  const url = `http://${text}/`;
  return URL.canParse(url) && new URL(url).hostname === label ? text : label;
}

/** Punycode (RFC 3492, section 6.2), which browsers don't offer; `null`: it is none. */
function decoded(code: string): string | null {
  const basic = Math.max(0, code.lastIndexOf('-'));
  const points = [...code.slice(0, basic)].map((letter) => letter.codePointAt(0) ?? 0);
  let [point, place, bias] = [128, 0, 72];
  for (let next = basic === 0 ? 0 : basic + 1; next < code.length; ) {
    const last = place;
    for (let weight = 1, base = 36; ; base += 36) {
      const digit = DIGITS.indexOf(code.charAt(next) || ' ');
      next += 1;
      place += digit * weight;
      if (digit === -1 || place > 0x7fffffff) return null;
      const threshold = Math.min(26, Math.max(1, base - bias));
      if (digit < threshold) break;
      weight *= 36 - threshold;
    }
    const length = points.length + 1;
    bias = adapted(place - last, length, last === 0);
    point += Math.floor(place / length);
    place %= length;
    if (point > 0x10ffff) return null;
    points.splice(place, 0, point);
    place += 1;
  }
  return String.fromCodePoint(...points);
}

function adapted(difference: number, length: number, isFirst: boolean): number {
  let delta = Math.floor(difference / (isFirst ? 700 : 2));
  delta += Math.floor(delta / length);
  let bias = 0;
  for (; delta > 455; bias += 36) delta = Math.floor(delta / 35);
  return bias + Math.floor((36 * delta) / (delta + 38));
}
