import type { KubernetesObject, ManagedFields } from '../../client/kinds.ts';
import { DELIVERY_LABEL } from '../../delivery/secrets.ts';
import { type Field, fieldSetOf, notOwned, onlyTheirs } from './field-sets.ts';
import { INITIAL_MANAGER, MANAGER } from './mark.ts';

/** A field that others have added. */
interface ForeignField extends Field {
  readonly manager: string;
  /**
   * True if it changes what the object does, or hides it from our copies. Other metadata stays: a label, a finalizer.
   */
  readonly isRemoved: boolean;
}

/** The cluster's own part that numbers revisions, and scales for an autoscaler. */
const CONTROLLERS: ReadonlySet<string> = new Set(['kube-controller-manager']);
const OWN_MANAGERS: ReadonlySet<string> = new Set([MANAGER, INITIAL_MANAGER]);
/** What `kubectl rollout restart` sets: if it were removed, the pods would restart again. */
const RESTARTED = '/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt';
/** Others may set these. An autoscaler sets the number of pods; so may a person, until the autoscaler decides next. */
const KEPT: ReadonlySet<string> = new Set([RESTARTED, '/spec/replicas']);
/** This label would hide an object of a site from our copies. */
const HIDING = `/metadata/labels/${DELIVERY_LABEL.replace('/', '~1')}`;
/** The metadata of an object: none of its fields changes what the object does. */
const METADATA = '/metadata/';

/** Results by object: every pass compares each one, and the copies replace an object only if it changes. */
const DRIFTS = new WeakMap<
  KubernetesObject,
  { readonly applied: KubernetesObject; readonly drift: string | null }
>();
const FOREIGN = new WeakMap<KubernetesObject, readonly ForeignField[]>();

/**
 * What differs from the object that was applied, in words; `null`: nothing. A field that only others set is a
 * difference if it changes what the object does, or hides it from our copies.
 */
export function objectDrift(applied: KubernetesObject, found: KubernetesObject): string | null {
  const known = DRIFTS.get(found);
  if (known?.applied === applied) return known.drift;
  const drift = driftOf(applied, found);
  DRIFTS.set(found, { applied, drift });
  return drift;
}

function driftOf(applied: KubernetesObject, found: KubernetesObject): string | null {
  if (found.metadata.deletionTimestamp !== undefined) return 'being deleted';
  const own = fieldSetOf(
    entriesOf(found).filter(
      ({ manager, operation }) =>
        // Earlier versions created Secrets by a request that isn't an apply.
        manager === MANAGER && (operation === 'Apply' || found.kind === 'Secret'),
    ),
  );
  const changed = notOwned(applied, own).map(({ path }) => path);
  const added = foreignFields(found)
    .filter(({ isRemoved }) => isRemoved)
    .map(({ path, manager }) => `${path} (by ${manager})`);
  if (changed.length + added.length === 0) return null;
  return [
    ...(changed.length === 0 ? [] : [`changed from outside: ${changed.join(', ')}`]),
    ...(added.length === 0 ? [] : [`added from outside: ${added.join(', ')}`]),
  ].join('; ');
}

/** What only other managers set in an object of ours, except `KEPT` and what the cluster's own parts set. */
export function foreignFields(found: KubernetesObject): readonly ForeignField[] {
  const known = FOREIGN.get(found);
  if (known !== undefined) return known;
  const fields = entriesOf(found).some(isForeign) ? foreignOf(found) : [];
  FOREIGN.set(found, fields);
  return fields;
}

function foreignOf(found: KubernetesObject): ForeignField[] {
  const entries = entriesOf(found);
  const ours = fieldSetOf(entries.filter(({ manager }) => OWN_MANAGERS.has(manager)));
  const isSearched = (pointer: string) =>
    RESTARTED.startsWith(`${pointer}/`) || pointer === '/metadata' || isMetadataMember(pointer);
  return entries.filter(isForeign).flatMap(({ manager, ...entry }) =>
    onlyTheirs(found, { theirs: fieldSetOf([entry]), ours }, isSearched)
      .filter(({ pointer }) => !KEPT.has(pointer))
      .map((field) => ({
        ...field,
        manager,
        isRemoved: field.pointer === HIDING || !field.pointer.startsWith(METADATA),
      })),
  );
}

/** Removes the given fields of this version of the object (RFC 6902). */
export function removalPatch(found: KubernetesObject, fields: readonly ForeignField[]): object[] {
  const pointers = [...new Set(fields.map(({ pointer }) => pointer))];
  return [
    { op: 'test', path: '/metadata/resourceVersion', value: found.metadata.resourceVersion },
    // From the end, because a removal moves the later items of a list.
    ...pointers
      .sort(byPointer)
      .toReversed()
      .map((path) => ({ op: 'remove', path })),
  ];
}

/** True if what we have applied has this field. */
export function ownsField(found: KubernetesObject, path: readonly string[]): boolean {
  const applied = entriesOf(found).filter(
    ({ manager, operation }) => manager === MANAGER && operation === 'Apply',
  );
  let set: object | undefined = fieldSetOf(applied);
  for (const member of path) set = set === undefined ? undefined : Object(set)[`f:${member}`];
  return set !== undefined;
}

/**
 * True if both are one object in which the same managers have set the same fields, at the same times. The cluster's own
 * parts don't count. Our own fields do, because others may take them over.
 */
export function haveSameManagedFields(one: KubernetesObject, other: KubernetesObject): boolean {
  const [a, b] = [comparedMembers(one), comparedMembers(other)];
  return a.length === b.length && a.every((text, index) => text === b[index]);
}

function comparedMembers({ metadata }: KubernetesObject): readonly unknown[] {
  const entries = (metadata.managedFields ?? []).filter(
    (entry) => OWN_MANAGERS.has(entry.manager) || isForeign(entry),
  );
  return [metadata.uid, metadata.deletionTimestamp, ...entries.flatMap((entry) => Object.values(entry))];
}

function entriesOf({ metadata }: KubernetesObject): readonly ManagedFields[] {
  return metadata.managedFields ?? [];
}

function isForeign({ manager, subresource }: ManagedFields): boolean {
  return !OWN_MANAGERS.has(manager) && !CONTROLLERS.has(manager) && subresource !== 'status';
}

function isMetadataMember(pointer: string): boolean {
  return /^\/metadata\/[^/]+$/.test(pointer);
}

function byPointer(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}
