import type { Forwarder } from './forwarder.ts';

/** Seconds until the edge must answer. The edge waits 30 s for the tag server: the preview has long polls. */
export const ANSWER_SECONDS = 35;
export const CONNECT_SECONDS = 3;

/** The name of a site's path in products that need one: `tagyard_m3trics1`. */
export function nameOf({ path }: Pick<Forwarder, 'path'>): string {
  return `tagyard_${path.slice(1)}`;
}

/**
 * The allowed names as alternatives of a regular expression, valid in PCRE, RE2 and JavaScript, without quotes and
 * backslashes: `_ga|_ga_[^=; ]*`. The caller puts it between a separator and `=`.
 */
export function cookieNames(cookies: readonly string[]): string {
  return cookies.map(cookieName).join('|');
}

/** One allowed name as a regular expression. */
export function cookieName(pattern: string): string {
  const name = pattern.replaceAll('.', '[.]');
  return name.endsWith('*') ? `${name.slice(0, -1)}[^=; ]*` : name;
}

/** Lines of a comment that each product's snippet begins with, without the comment's sign. */
export function preamble({ domain, path, edge }: Forwarder, where: string): string[] {
  return [
    `Tagyard for ${domain}: forwards ${path}/ to ${edge.host}.`,
    where,
    'The token proves that this server forwards for the domain. Treat this text like a password.',
  ];
}

export function comment(sign: string, lines: readonly string[]): string {
  return lines.map((line) => `${sign} ${line}\n`).join('');
}

/** Indents the non-empty lines of a text. */
export function indent(text: string, by: number): string {
  return text.replace(/^(?=.)/gm, ' '.repeat(by));
}
