import type { KubernetesObject, ManagedFields } from '../../../clients/kubernetes/kinds.ts';

/**
 * A set of fields as managedFields have it: `f:<member>`, `k:<JSON of the keys of an item>`, `v:<value of an item>`, and
 * `.` for the node itself. A node without members is a leaf: all below it belongs to it.
 * Source: sigs.k8s.io/structured-merge-diff, fieldpath/serialize.go.
 */
type FieldSet = { readonly [member: string]: FieldSet };

/** A field of an object: its JSON pointer (RFC 6901), and its path for people. */
export interface Field {
  readonly pointer: string;
  readonly path: string;
}

/** Identifies the object; never in a field set. */
const ADDRESS: ReadonlySet<string> = new Set([
  '/apiVersion',
  '/kind',
  '/metadata/name',
  '/metadata/namespace',
  '/status',
]);

/** The fields of some entries of managedFields together. */
export function fieldSetOf(entries: readonly Pick<ManagedFields, 'fieldsV1'>[]): FieldSet {
  // The form is the API server's.
  return entries.map(({ fieldsV1 }) => (fieldsV1 ?? {}) as FieldSet).reduce(merged, {});
}

function merged(one: FieldSet, other: FieldSet): FieldSet {
  const both = Object.entries(other).map(([key, set]) => {
    const own = one[key];
    return [key, own === undefined ? set : merged(own, set)] as const;
  });
  return { ...one, ...Object.fromEntries(both) };
}

/**
 * The fields that `object` sets and `owned` doesn't have. An API server takes a field from the set of a manager as soon
 * as another one changes or removes it, so a field that is still in the set still has the value that was applied. Values
 * need no comparison, which would have to know how the API server writes them.
 */
export function notOwned(object: KubernetesObject, owned: FieldSet): Field[] {
  return membersNotOwned(object, owned, ROOT);
}

const ROOT: Field = { pointer: '', path: '' };

function membersNotOwned(value: object, owned: FieldSet, at: Field): Field[] {
  return Object.entries(value).flatMap(([name, inner]) => {
    const field = memberOf(at, name);
    if (inner === undefined || inner === null || ADDRESS.has(field.pointer)) return [];
    const child = owned[`f:${name}`];
    return child === undefined ? absent(inner, field) : valueNotOwned(inner, child, field);
  });
}

/** A structure that isn't in the set as a whole, such as `metadata`, isn't missing if it has no members. */
function absent(value: unknown, field: Field): Field[] {
  const isEmpty = typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  return isEmpty ? [] : [field];
}

function valueNotOwned(value: unknown, owned: FieldSet, at: Field): Field[] {
  if (isLeaf(owned) || typeof value !== 'object' || value === null) return [];
  if (!Array.isArray(value)) return membersNotOwned(value, owned, at);
  return value.flatMap((item: unknown, index) => {
    const found = Object.keys(owned).find((key) => isItem(item, key));
    const field = itemOf(at, index, found ?? nameOfItem(item, index));
    if (found === undefined) return [field];
    return valueNotOwned(item, owned[found] ?? {}, field);
  });
}

/**
 * The outermost fields of `object` that are in `theirs` and not in `ours`. A field that `isSearched` isn't returned as a
 * whole, but its members are.
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
    const index = value.findIndex((item) => isItem(item, key));
    return index < 0 ? null : { value: value[index], field: itemOf(at, index, key) };
  }
  const name = key.slice(2);
  const inner = (value as Readonly<Record<string, unknown>>)[name];
  return key.startsWith('f:') && inner !== undefined ? { value: inner, field: memberOf(at, name) } : null;
}

/** True if the key of a field set means this item of a list. Keys that our item omits have their default there. */
function isItem(item: unknown, key: string): boolean {
  if (key.startsWith('v:')) return key.slice(2) === JSON.stringify(item);
  if (!key.startsWith('k:') || typeof item !== 'object' || item === null) return false;
  const keys: unknown = JSON.parse(key.slice(2));
  const members = item as Readonly<Record<string, unknown>>;
  return Object.entries(keys as object).every(
    ([name, value]) => members[name] === undefined || members[name] === value,
  );
}

function isLeaf(set: FieldSet): boolean {
  return Object.keys(set).every((key) => key === '.');
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
