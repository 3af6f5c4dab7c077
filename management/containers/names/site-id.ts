import { randomBytes } from 'node:crypto';
import { isKeptLabel } from '../../../sites/manifest/own-zones.ts';
import { type Draw, drawCharacter } from './draw.ts';

/** Short enough for a DNS label of 63 characters after a random suffix and `-preview` are appended. */
const LONGEST = 40;
const SUFFIX_LENGTH = 5;
const ALPHABET = 'abcdefghijkmnpqrstuvwxyz23456789';

/** Letters that people write in ASCII by other letters, or whose marks Unicode doesn't take off. */
const LETTERS: Readonly<Record<string, string>> = {
  ...{ ä: 'ae', ö: 'oe', ü: 'ue', ß: 'ss', æ: 'ae', œ: 'oe' },
  ...{ ø: 'o', ł: 'l', đ: 'd', ð: 'd', þ: 'th', ħ: 'h', ŧ: 't', ı: 'i' },
};

/** The site id made from a display name. Check it with `needsSuffix`. */
export function slug(name: string): string {
  const text = name
    .normalize('NFC')
    .toLowerCase()
    .replace(/[äöüßæœøłđðþħŧı]/g, (letter) => LETTERS[letter] ?? letter)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, LONGEST)
    .replace(/^-+|-+$/g, '');
  return text === '' ? 'site' : text;
}

/**
 * Whether a site can't have this id without a suffix. A site `acme-origin` would claim the origin hostname of the site
 * `acme`. Visitors would believe that a site `login` is the operator's. A site with its host's name could claim the
 * host's own address.
 */
export function needsSuffix(id: string, host: string): boolean {
  return /-(?:origin|preview)$/.test(id) || isKeptLabel(id, host);
}

/** The id with a random suffix. Use it if `needsSuffix` is true, or another site has, or ever had, the id. */
export function withSuffix(id: string, draw: Draw = randomBytes): string {
  const suffix = Array.from({ length: SUFFIX_LENGTH }, () => drawCharacter(draw, ALPHABET)).join('');
  return `${id}-${suffix}`;
}
