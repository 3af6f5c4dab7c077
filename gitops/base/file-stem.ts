import { hash16 } from './ownership.ts';

/** A file's name has at most 255 bytes; the rest is for an ending and for a file that is being written. */
const LONGEST = 200;
const HASHED = /~[0-9a-f]{16}$/;

/** A name as a file's name without ending. A long one is cut, and ends with `~` and its hash. */
export function fileStem(name: string): string {
  return name.length <= LONGEST ? name : `${name.slice(0, LONGEST - 17)}~${hash16(name)}`;
}

/** True for a stem that was cut: the name can't be read back. */
export function isCut(stem: string): boolean {
  return HASHED.test(stem);
}
