import { isIP } from 'node:net';
import { replaceHidden } from '../../base/text.ts';

/** How many characters of a text are read, and how many are kept. */
const READ = 1_024;
const KEPT = 500;

/** The permissions of server templates, which messages quote. Source: Tag Manager, "Server-side permissions". */
export const PERMISSIONS: ReadonlySet<string> = new Set([
  'access_bigquery',
  'access_firestore',
  'access_response',
  'access_template_storage',
  'get_cookies',
  'logging',
  'read_container_data',
  'read_event_data',
  'read_event_metadata',
  'read_request',
  'return_response',
  'run_container',
  'send_http',
  'send_pixel_from_browser',
  'set_cookies',
  'use_custom_private_keys',
  'use_google_credentials',
  'use_message',
]);

/** Names whose values count as personal or secret. */
const LONG_NAMES =
  'address|birth|body|birthday|card|city|client|cookies?|country|customer|data|e?mail|gclid|gender|hash|headers?|iban|location|login|mobile|name|order|params?|passw(?:or)?d|phone|postal(?:code)?|postcode|query|referr?er|region|search|secret|session|sha256|street|title|token|town|transaction|user|username|value|visitor';
const SHORT_NAMES = 'agent|auth|dob|fb[cp]|id|ip|key|tel|zip';
const PERSONAL = new RegExp(`(?:${LONG_NAMES})$|(?:^|[_.$-])(?:${SHORT_NAMES})$`, 'i');
const CAMEL_CASE = /[a-z](?:Agent|Auth|Id|ID|Ip|IP|Key)$/;
const isPersonal = (name: string) => PERSONAL.test(name) || CAMEL_CASE.test(name);

const URLS = /\b(?:https?|wss?):\/\/[^\s"'<>`]+/gi;
const QUOTED = /"(?:[^"\\]|\\.)*(?:"|$)|(?<!\w)'(?:[^'\\]|\\.)*(?:'(?!\w)|$)|`[^`]*(?:`|$)/g;
/** `name=value`; and `name: …` up to a sign that ends a value. */
const ASSIGNED = /([\w$.-]+)(\s?=\s?)([^\s,;&|)}]+)/g;
const STATED = /([\w$.-]+)(\s?:\s+)([^,;|)}\n]+)/g;
const MAILS = /[^\s@,;:()[\]<>]+(?:@|%40)[^\s@,;:()[\]<>]+/gi;
const IPV4 = /(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])/g;
const IPV6 = /(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?:%\w+)?(?![\w:])/gi;
const PHONES = /\+?\(?\d[\d ()./-]{5,}\d/g;
const WORDS = /[\w%+/=.~-]{5,}/g;
const TAG_ID = /^(?:GTM|G|AW|DC|UA)-[A-Z0-9]{4,12}$/;

/**
 * A free text without what may be personal or secret: addresses, ids, quoted and assigned values, and parts of URLs. A
 * name in a plain sentence can't be recognised.
 */
export function scrubText(text: string): string {
  // The last word may be cut, and a part of an id or an address isn't recognised as one.
  const read = text.length > READ ? text.slice(0, READ).replace(/\S+$/, '') : text;
  const line = replaceHidden(read).trim();
  // The text is data, not a sentence: JSON, a part of a JSON text (such as one that was cut), or one long word.
  const isWord = line === '' && read !== text;
  if (isWord || /^[{[\]}]/.test(line) || /["']\s*:/.test(line)) return '[data]';
  return line
    .replace(URLS, (url) => shownUrl(url) ?? '[url]')
    .replace(MAILS, '[mail]')
    .replace(QUOTED, (quoted) => (PERMISSIONS.has(quoted.slice(1, -1)) ? quoted : '[value]'))
    .replace(ASSIGNED, (all, name: string, sign: string, value: string) =>
      isPlain(value) && !isPersonal(name) ? all : `${name}${sign}[value]`,
    )
    .replace(STATED, (all, name: string, sign: string) => (isPersonal(name) ? `${name}${sign}[value]` : all))
    .replace(IPV6, (found) => (isIP(found.split('%')[0] ?? '') === 6 ? '[ip]' : found))
    .replace(IPV4, '[ip]')
    .replace(PHONES, '[number]')
    .replace(WORDS, (word) => (isId(word) ? '[id]' : word))
    .slice(0, KEPT);
}

/** A status, a count or a constant. */
function isPlain(value: string): boolean {
  return /^(?:\d{1,3}|true|false|null|undefined)$/.test(value) || PERMISSIONS.has(value);
}

/** True for what a program made: long, or with several digits, or percent-encoded. */
function isId(word: string): boolean {
  if (TAG_ID.test(word)) return false;
  if (word.startsWith('http') && word.includes('//')) return false;
  if (word.includes('%')) return true;
  const parts = word.split('/');
  return parts.some(
    (part) =>
      /\d{5}/.test(part) ||
      part.length > 32 ||
      (part.length >= 8 && /\d.*\d/.test(part) && /[a-z]/i.test(part)),
  );
}

/**
 * A URL's scheme, host and path, or a path alone; `*` replaces parts that may be ids, `[ip]` an address. Without port,
 * credentials, query and fragment. `null`: it is no URL of the web.
 */
export function shownUrl(text: string): string | null {
  const isPath = text.startsWith('/') && !text.startsWith('//');
  const url = URL.parse(isPath ? `http://path${text}` : text);
  if (url === null || !/^(?:https?|wss?):$/.test(url.protocol)) return null;
  const path = url.pathname
    .split('/')
    .map((part) => (part === '' || isPathWord(part) ? part : '*'))
    .join('/')
    .slice(0, 200);
  if (isPath) return path;
  const { hostname } = url;
  const isAddress = hostname.startsWith('[') || isIP(hostname) !== 0;
  const host = isAddress
    ? '[ip]'
    : hostname
        .split('.')
        .map((label) => (/\d{4}/.test(label) || label.length > 40 ? '*' : label))
        .join('.');
  return `${url.protocol}//${host}${path === '/' ? '' : path}`;
}

function isPathWord(part: string): boolean {
  return /^[a-z]{1,20}(?:[._-][a-z]{1,20}){0,3}$/i.test(part) || /^v\d{1,2}(?:\.\d{1,2})?$/i.test(part);
}
