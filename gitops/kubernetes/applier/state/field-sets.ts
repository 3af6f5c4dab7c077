import type { KubernetesObject, ManagedFields } from '../../client/kinds.ts';

/**
 * A set of fields as managedFields have it: `f:<member>`, `k:<JSON of the keys of an item>`, `v:<value of an item>`,
 * and `.` for the node itself. A node without members is a leaf: all below it belongs to it. Source:
 * sigs.k8s.io/structured-merge-diff, fieldpath/serialize.go.
 */
type FieldSet = { readonly [member: string]: FieldSet };

/** A field of an object: its JSON pointer (RFC 6901), and its path as messages show it. */
export interface Field {
  readonly pointer: string;
  readonly path: string;
}

/** The fields of some entries of managedFields together. */
export function fieldSetOf(entries: readonly Pick<ManagedFields, 'fieldsV1'>[]): FieldSet {
  // The API server writes this form.
  const sets = entries.map(({ fieldsV1 }) => JSON.parse(fieldsV1 ?? '{}') as FieldSet);
  return sets.length === 0 ? {} : sets.reduce(merged);
}

function merged(one: FieldSet, other: FieldSet): FieldSet {
  const both = Object.entries(other).map(([key, set]) => {
    const own = one[key];
    return [key, own === undefined ? set : merged(own, set)] as const;
  });
  return { ...one, ...Object.fromEntries(both) };
}

/** The steps from an object to a field. Its path is made from them only where it is needed: rarely. */
interface Step {
  readonly before: Step | null;
  /** A member's name, or an item's key in the field set. */
  readonly name: string;
  /** The place of an item in its list. */
  readonly index?: number;
}

/**
 * The fields that `object` sets and `owned` doesn't have. An API server takes a field from the set of a manager as soon
 * as another one changes or removes it, so a field that is still in the set still has the value that was applied.
 * Values need no comparison, which would have to know how the API server writes them.
 */
export function notOwned(object: KubernetesObject, owned: FieldSet): Field[] {
  const missing: Step[] = [];
  membersNotOwned({ value: object, owned, at: null }, missing);
  return missing.map(fieldAt);
}

interface Compared {
  readonly value: unknown;
  readonly owned: FieldSet;
  readonly at: Step | null;
}

function membersNotOwned({ value, owned, at: before }: Compared, missing: Step[]): void {
  const members = value as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(members)) {
    const inner = members[name];
    if (inner === undefined || inner === null || isAddress(before, name)) continue;
    const at = { before, name };
    const child = owned[`f:${name}`];
    if (child !== undefined) valueNotOwned({ value: inner, owned: child, at }, missing);
    // The set has a structure such as `metadata` only by its members, so an empty one isn't missing.
    else if (typeof inner !== 'object' || Object.keys(inner).length > 0) missing.push(at);
  }
}

function valueNotOwned({ value, owned, at: before }: Compared, missing: Step[]): void {
  if (typeof value !== 'object' || value === null || isLeaf(owned)) return;
  if (!Array.isArray(value)) {
    membersNotOwned({ value, owned, at: before }, missing);
    return;
  }
  const items = Object.keys(owned).map((key) => ({ key, isOf: itemTest(key) }));
  for (const [index, item] of value.entries()) {
    const found = items.find(({ isOf }) => isOf(item))?.key;
    const at = { before, name: found ?? nameOfItem(item, index), index };
    if (found === undefined) missing.push(at);
    else valueNotOwned({ value: item, owned: owned[found] ?? {}, at }, missing);
  }
}

/** What identifies the object, and its status: never in a field set. */
function isAddress(before: Step | null, name: string): boolean {
  if (before === null) return name === 'apiVersion' || name === 'kind' || name === 'status';
  const isOfMetadata = before.before === null && before.name === 'metadata';
  return isOfMetadata && (name === 'name' || name === 'namespace');
}

function fieldAt({ before, name, index }: Step): Field {
  const at = before === null ? ROOT : fieldAt(before);
  return index === undefined ? memberOf(at, name) : itemOf(at, index, name);
}

const ROOT: Field = { pointer: '', path: '' };

/**
 * The outermost fields of `object` that are in `theirs` and not in `ours`. If `isSearched`, the members
 * are returned in place of the field.
 */
export function onlyTheirs(
  object: KubernetesObject,
  sets: { readonly theirs: FieldSet; readonly ours: FieldSet },
  isSearched: (pointer: string) => boolean,
): Field[] {
  const visit = (value: unknown, theirs: FieldSet, ours: FieldSet | undefined, at: Field): Field[] =>
    Object.entries(theirs).flatMap(([key, inner]) => {
      const found = key === '.' ? null : locate(value, key, at);
      if (found === null) return [];
      const own = ours?.[key];
      if (own !== undefined || isSearched(found.field.pointer)) {
        return visit(found.value, inner, own, found.field);
      }
      return [found.field];
    });
  return visit(object, sets.theirs, sets.ours, ROOT);
}

/** Where a key of a field set is in the value; `null`: not there any more. */
function locate(value: unknown, key: string, at: Field): { value: unknown; field: Field } | null {
  if (typeof value !== 'object' || value === null) return null;
  if (Array.isArray(value)) {
    const index = value.findIndex(itemTest(key));
    return index < 0 ? null : { value: value[index], field: itemOf(at, index, key) };
  }
  const name = key.slice(2);
  const inner = (value as Readonly<Record<string, unknown>>)[name];
  return key.startsWith('f:') && inner !== undefined ? { value: inner, field: memberOf(at, name) } : null;
}

/**
 * A test whether a key of a field set means an item of a list. If our item omits a member, the key has the
 * member's default: such an item matches. The key is parsed once for all items.
 */
function itemTest(key: string): (item: unknown) => boolean {
  const text = key.slice(2);
  if (key.startsWith('v:')) return (item) => text === JSON.stringify(item);
  if (!key.startsWith('k:')) return () => false;
  const keys = Object.entries(JSON.parse(text) as object);
  return (item) => {
    if (typeof item !== 'object' || item === null) return false;
    const members = item as Readonly<Record<string, unknown>>;
    return keys.every(([name, value]) => members[name] === undefined || members[name] === value);
  };
}

function isLeaf(set: FieldSet): boolean {
  for (const key in set) if (key !== '.') return false;
  return true;
}

function memberOf({ pointer, path }: Field, name: string): Field {
  const token = name.replaceAll('~', '~0').replaceAll('/', '~1');
  const isPlain = /^[\w-]+$/.test(name);
  return {
    pointer: `${pointer}/${token}`,
    path: isPlain ? `${path}${path === '' ? '' : '.'}${name}` : `${path}[${name}]`,
  };
}

function itemOf({ pointer, path }: Field, index: number, key: string): Field {
  const values = key.startsWith('k:') ? Object.values(JSON.parse(key.slice(2)) as object) : [key.slice(2)];
  return { pointer: `${pointer}/${index}`, path: `${path}[${values.join(',')}]` };
}

function nameOfItem(item: unknown, index: number): string {
  const name = typeof item === 'object' && item !== null && 'name' in item ? String(item.name) : index;
  return `v:${name}`;
}
