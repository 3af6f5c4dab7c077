import { hash16 } from './ownership.ts';

/** Maximum length of a stem. A file name has at most 255 bytes; the rest is for endings, also of temporary files. */
const LONGEST = 200;
const HASHED = /~[0-9a-f]{16}$/;

/**
 * Makes the stem of a file name from a name. A long name is cut, and ends with `~` and the hash of the whole name.
 */
export function fileStem(name: string): string {
  return name.length <= LONGEST ? name : `${name.slice(0, LONGEST - 17)}~${hash16(name)}`;
}

/** True for a stem that was cut: the name can't be read back. */
export function isCut(stem: string): boolean {
  return HASHED.test(stem);
}
