import { isDeepStrictEqual } from 'node:util';

type Members = Readonly<Record<string, unknown>>;

/** A value with a commit undone, or the paths that later commits have changed too. */
interface Undone {
  readonly value: unknown;
  readonly conflicts: readonly string[];
}

/**
 * Undoes in `current` what changed `before` to `after`. What later commits have changed elsewhere stays; where they have
 * changed the same value, there is a conflict. Entries of lists are compared by their domain or token.
 */
export function undo(current: unknown, before: unknown, after: unknown, path = ''): Undone {
  if (isDeepStrictEqual(before, after) || isDeepStrictEqual(current, before)) {
    return { value: current, conflicts: [] };
  }
  if (isDeepStrictEqual(current, after)) return { value: before, conflicts: [] };
  if (isMembers(current) && isMembers(before) && isMembers(after)) {
    return undoMembers(current, before, after, (key) => (path === '' ? key : `${path}.${key}`));
  }
  const [ours, old, theirs] = [entriesOf(current), entriesOf(before), entriesOf(after)];
  if (ours === null || old === null || theirs === null) return { value: current, conflicts: [path] };
  const { value, conflicts } = undoMembers(ours, old, theirs, (key) => `${path}[${key}]`);
  return { value: ordered(value as Members, [ours, old, theirs]), conflicts }; // undoMembers answers members
}

function undoMembers(
  current: Members,
  before: Members,
  after: Members,
  pathOf: (key: string) => string,
): Undone {
  const conflicts: string[] = [];
  const keys = new Set([...Object.keys(current), ...Object.keys(before), ...Object.keys(after)]);
  const members = [...keys].flatMap((key): [string, unknown][] => {
    const undone = undo(current[key], before[key], after[key], pathOf(key));
    conflicts.push(...undone.conflicts);
    return undone.value === undefined ? [] : [[key, undone.value]];
  });
  return { value: Object.fromEntries(members), conflicts };
}

/**
 * The entries in the order before the commit if their order is still the commit's; otherwise in the current order, with
 * restored entries last.
 */
function ordered(
  entries: Members,
  [current, before, after]: readonly [Members, Members, Members],
): unknown[] {
  const isAsCommitted = isDeepStrictEqual(Object.keys(current), Object.keys(after));
  const order = isAsCommitted ? [...Object.keys(before), ...Object.keys(current)] : Object.keys(current);
  const keys = new Set([...order, ...Object.keys(entries)]);
  return [...keys].flatMap((key) => (key in entries ? [entries[key]] : []));
}

/** The entries of a list by domain or token; `null`: the value is no such list. An absent list is an empty one. */
function entriesOf(value: unknown): Members | null {
  if (value === undefined) return {};
  if (!Array.isArray(value) || !value.every(isMembers)) return null;
  const nameOf = ({ domain, token }: Members) => domain ?? token;
  if (!value.every((entry) => typeof nameOf(entry) === 'string')) return null;
  return Object.fromEntries(value.map((entry) => [String(nameOf(entry)), entry]));
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
