import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';

const change = z
  .object({
    path: z
      .string()
      .meta({ description: 'such as `features.multi_domain` or `domains[acme.example].webTagId`' }),
    from: z.unknown().meta({ description: 'null: it was not there' }),
    to: z.unknown().meta({ description: 'null: it is not there any more' }),
  })
  .meta({ id: 'Change', description: 'one value that a change sets. Secrets are never shown' });

export const changeList = z.array(change);

/** The answer to a dry run of a request that makes no commit. */
export const planAnswer = z
  .object({ plan: z.object({ changes: changeList }) })
  .meta({ id: 'Plan', description: 'what the request would change; nothing has changed' });

const ON: readonly string[] = ['1', 'true'];

export const dryRun = z
  .enum(['1', 'true', '0', 'false'])
  .optional()
  .meta({ description: '`1`: answers what would change, and changes nothing' });

/**
 * The query of a mutation that has no other parameters. Refuses a misspelled `dryRun`: otherwise the change would be
 * made.
 */
export const dryRunQuery = z.looseObject({ dryRun }).superRefine((query, context) => {
  for (const key of Object.keys(query)) {
    if (key === 'dryRun' || key.toLowerCase().replace(/[^a-z]/g, '') !== 'dryrun') continue;
    context.addIssue({ code: 'custom', path: [key], message: 'is not a parameter; write dryRun' });
  }
});

/** Whether a request with this query must change nothing. */
export function isDryRun(query: unknown): boolean {
  return (
    typeof query === 'object' && query !== null && 'dryRun' in query && ON.includes(String(query.dryRun))
  );
}

export type ValueChange = z.output<typeof change>;

/** Members whose values are never shown; it is only shown that they have changed. */
const SECRETS: ReadonlySet<string> = new Set([
  'containerConfig',
  'containerConfigB64',
  'forwarderToken',
  'key',
  'secret',
  'tokenHash',
]);
const SECRET = '(secret)';
const NEW_SECRET = '(new secret)';

/** The members that can identify the entries of a list. The first one that all entries have is used. */
const IDENTITIES = ['id', 'domain', 'token', 'subject'] as const;

type Members = Readonly<Record<string, unknown>>;

/**
 * What distinguishes two versions of something, value by value. `null`: there is no such version. List entries are
 * matched by the member that identifies them, so that a new first entry is one change.
 */
export function planOf(before: object | null, after: object | null): { changes: ValueChange[] } {
  return { changes: differences('', { ...before }, { ...after }) };
}

function differences(path: string, from: unknown, to: unknown): ValueChange[] {
  if (isDeepStrictEqual(from, to)) return [];
  if (isMembers(from) && isMembers(to)) {
    return [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap((key) => {
      const at = path === '' ? key : `${path}.${key}`;
      return SECRETS.has(key) ? secretChange(at, from[key], to[key]) : differences(at, from[key], to[key]);
    });
  }
  const [before, after] = [byIdentity(from), byIdentity(to)];
  if (before === null || after === null) {
    // A missing member is shown as null, so missing and null are no difference.
    return (from ?? null) === (to ?? null) ? [] : [{ path, from: shown(from), to: shown(to) }];
  }
  const entries = [...new Set([...before.keys(), ...after.keys()])].flatMap((name) =>
    differences(`${path}[${name}]`, before.get(name), after.get(name)),
  );
  const kept = (one: ReadonlyMap<string, unknown>, other: ReadonlyMap<string, unknown>) =>
    [...one.keys()].filter((name) => other.has(name));
  const isSameOrder = isDeepStrictEqual(kept(before, after), kept(after, before));
  return isSameOrder ? entries : [...entries, { path, from: [...before.keys()], to: [...after.keys()] }];
}

function secretChange(path: string, from: unknown, to: unknown): ValueChange[] {
  if (isDeepStrictEqual(from, to)) return [];
  const isNew = from !== undefined && to !== undefined;
  const hidden = (value: unknown, as: string) => (value === undefined ? null : as);
  return [{ path, from: hidden(from, SECRET), to: hidden(to, isNew ? NEW_SECRET : SECRET) }];
}

/** The entries of a list by the member that identifies them; `null`: this is no list of such entries. */
function byIdentity(value: unknown): ReadonlyMap<string, unknown> | null {
  if (!Array.isArray(value) || !value.every(isMembers)) return null;
  if (value.length === 0) return new Map();
  const identity = IDENTITIES.find((name) => value.every((entry) => typeof entry[name] === 'string'));
  if (identity === undefined) return null;
  const entries = new Map(value.map((entry) => [String(entry[identity]), entry]));
  return entries.size === value.length ? entries : null;
}

/** A value without its secrets. */
function shown(value: unknown): unknown {
  if (value === undefined) return null;
  if (Array.isArray(value)) return value.map(shown);
  if (!isMembers(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]) =>
      member === undefined ? [] : [[key, SECRETS.has(key) ? SECRET : shown(member)]],
    ),
  );
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
