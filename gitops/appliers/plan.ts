import type { Ownership } from '../../base/ownership.ts';
import type { Change, Conflict, Observed, Plan, Resource, Traits } from './contract.ts';

type PlanOptions = Pick<Traits, 'isShared' | 'givesNames'>;

/**
 * The difference between the desired resources and the observed objects of one target: pure, sorted by key, empty when
 * converged. Only objects that carry our mark are updated or deleted. A foreign object under a desired key is a
 * conflict, unless it may be taken over (`mayTake`).
 */
export function planResources<Spec, Ref>(
  desired: readonly Resource<Spec>[],
  observed: readonly Observed<Ref>[],
  options: PlanOptions = {},
): Plan<Spec, Ref> {
  const changes: Change<Spec, Ref>[] = [];
  const conflicts: Conflict[] = [];
  const found = new Map(observed.map((item) => [item.key, item]));
  const wanted = new Set<string>();

  for (const resource of desired) {
    const { target, site, key, summary } = resource;
    wanted.add(key);
    const existing = found.get(key);
    if (existing === undefined) {
      changes.push({ target, site, key, op: 'create', summary, desired: resource });
    } else if (existing.owner.kind === 'foreign' && !mayTake(existing.owner, resource, options)) {
      const detail = `${key} belongs to ${existing.owner.by}`;
      conflicts.push({ target, site, key, detail, ...(options.givesNames ? { ofName: true } : {}) });
    } else if (
      existing.owner.kind === 'foreign' ||
      existing.owner.site !== site ||
      !sameHash(resource, existing)
    ) {
      changes.push({ target, site, key, op: 'update', summary, desired: resource, observed: existing });
    }
  }
  for (const existing of observed) {
    if (wanted.has(existing.key) || existing.owner.kind === 'foreign') continue;
    const { target, key, owner } = existing;
    changes.push({
      target,
      site: owner.site,
      key,
      op: 'delete',
      summary: `remove ${key}`,
      observed: existing,
    });
  }
  return { changes: changes.sort(byKey), conflicts: conflicts.sort(byKey) };
}

/**
 * True if a foreign object may be overwritten: the manifest adopts it, or it is shared and another host made it for the
 * same site. In the second case git has moved the site to this host. Removing the object first would make the site's
 * names unreachable in between.
 */
export function mayTake(
  owner: Ownership & { kind: 'foreign' },
  { site, adopt }: Resource,
  { isShared = false }: PlanOptions,
): boolean {
  return adopt || (isShared && owner.site === site);
}

/** The conflicts of public names of sites. */
export function nameConflicts(plans: readonly Plan[]): Conflict[] {
  return plans.flatMap((plan) => plan.conflicts.filter(({ ofName }) => ofName));
}

/**
 * The changes that wait until every public name of their site is the site's own; a pure function. They are the creates
 * that need the names, and the same sites' deletes in the targets of these creates and of `unowned`. Until then, the
 * site is served under its earlier names, so the objects of these names must stay.
 * `unowned`: sites and targets of names that belong to others or couldn't be observed.
 */
export function waitingForNames(
  plans: readonly Plan[],
  unowned: readonly Pick<Conflict, 'site' | 'target'>[],
): Change[] {
  const unnamed = new Set(unowned.map(({ site }) => site));
  const changes = plans.flatMap((plan) => plan.changes).filter(({ site }) => unnamed.has(site));
  const creates = changes.filter(({ op, desired }) => op === 'create' && desired?.needsNames);
  const sites = new Set(creates.map(({ site }) => site));
  const targets = new Set([...creates, ...unowned].map(({ target }) => target));
  const isKept = ({ op, site, target }: Change) => op === 'delete' && sites.has(site) && targets.has(target);
  return [...creates, ...changes.filter(isKept)];
}

/** A mark carries only the first digits of the hash. */
function sameHash(resource: Resource, existing: Observed): boolean {
  return existing.hash !== null && existing.hash !== '' && resource.hash.startsWith(existing.hash);
}

function byKey(a: { key: string }, b: { key: string }): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}
