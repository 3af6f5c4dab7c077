import { randomInt } from 'node:crypto';

/** With a suffix of six and `-preview` behind it, still a label of fewer than 63 characters. */
const LONGEST = 40;
const SUFFIX_LENGTH = 5;
const ALPHABET = 'abcdefghijkmnpqrstuvwxyz23456789';

/** The site id that a name asks for; what another site's own hostname may look like is left to the suffix. */
export function slug(name: string): string {
  const text = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, LONGEST)
    .replace(/^-+|-+$/g, '');
  return text === '' ? 'site' : text;
}

/** `acme-origin` as a site would claim the origin hostname of `acme`. */
export function needsSuffix(id: string): boolean {
  return /-(?:origin|preview)$/.test(id) || id === 'origin' || id === 'preview';
}

/** The same id with a random end: for a name that is, or ever was, another site's. */
export function withSuffix(id: string): string {
  const suffix = Array.from({ length: SUFFIX_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
  return `${id}-${suffix}`;
}
