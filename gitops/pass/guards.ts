import { contentHash } from '../../base/ownership.ts';
import { counted } from '../../base/text.ts';
import type { Change, Conflict, Plan, Target, Traits } from '../appliers/contract.ts';
import { nameConflicts, waitingForNames } from '../appliers/plan.ts';
import { APPROVABLE_HOLDS } from '../report/approvable.ts';

/** `sync` applies all changes, `upsert_only` all but deletes. */
export const POLICIES = ['sync', 'upsert_only'] as const;
export type Policy = (typeof POLICIES)[number];

/** A site of the desired state, as the guards need it. A site that git no longer has isn't listed. */
export interface JudgedSite {
  readonly site: string;
  readonly state: 'present' | 'absent';
  readonly protect: boolean;
  readonly suspend: boolean;
  /** No usable manifest: nothing of the site is changed. */
  readonly unusable: boolean;
}

/** What git says of a site that isn't listed, but has objects on this host. */
export interface Removal {
  /**
   * A commit of the branch deleted the site's file, and git doesn't have it in another form, such as a link or under
   * another name; or the file names another host.
   */
  readonly confirmed: boolean;
  /** Why the removal isn't confirmed, for a person. */
  readonly detail?: string;
  /** Why the history of the site's file can't be read. The removal is then unconfirmed, so the site isn't removed. */
  readonly unreadable?: string;
  /** The site's last readable manifest has `protect: true`. */
  readonly protect: boolean;
  /** The host that the site has moved to. */
  readonly to?: string;
}

export interface JudgeInput {
  readonly sites: readonly JudgedSite[];
  /** One plan per target; a target that couldn't be observed has none. */
  readonly plans: readonly Plan[];
  /** Sites with a name that couldn't be observed and wasn't the site's own before: it may belong to others. */
  readonly unobservedNames: readonly Pick<Conflict, 'site' | 'target'>[];
  /** The traits of every target; `owned`: how many objects of this host the last observation found. */
  readonly targets: readonly (Traits & { readonly owned: number })[];
  readonly policy: Policy;
  /** Why the host is frozen; `null`: it isn't. */
  readonly frozen: string | null;
  /** The branch was rewritten since the last pass. */
  readonly historyRewritten: boolean;
  /** This is the first pass after the local state was lost. */
  readonly stateLost: boolean;
  /** By site, the facts about its removal, for every site that isn't in `sites`. */
  readonly removals: ReadonlyMap<string, Removal>;
  /** `changeId` of each approved change. */
  readonly approved: ReadonlySet<string>;
}

/** The input of `judge` that doesn't come from the observation. */
export type Guards = Pick<JudgeInput, 'policy' | 'frozen' | 'historyRewritten' | 'stateLost' | 'approved'>;

/** Why changes of these sites are blocked, for a person. */
export interface Block {
  readonly reason: BlockReason;
  readonly detail: string;
  readonly sites: readonly string[];
}

/** Why changes are blocked. An approval lifts only those of `APPROVABLE`. */
const BLOCK_REASONS = [
  'frozen',
  'empty_desired_state',
  'too_many_sites',
  'too_many_records',
  'history_rewritten',
  'absence_unconfirmed',
  'not_taken_over',
  'site_protected',
  'state_lost',
  'history_unreadable',
  'upsert_only',
] as const;
type BlockReason = (typeof BLOCK_REASONS)[number];
/**
 * `unusable`: the site has no usable manifest. `conflict`: a public name of the site belongs to others. `unobserved`: a
 * public name of the site may belong to others, because it couldn't be observed.
 */
export type HoldReason = BlockReason | 'suspended' | 'unusable' | 'conflict' | 'unobserved';

export const APPROVABLE: ReadonlySet<HoldReason> = new Set<BlockReason>(APPROVABLE_HOLDS);

export interface Verdict {
  readonly allowed: readonly Change[];
  readonly blocked: readonly Block[];
  /** Why each change that isn't allowed is held; several reasons may hold one change. */
  readonly held: ReadonlyMap<Change, readonly HoldReason[]>;
  /** The changes that wait for an approval, or have one; empty where nothing is guarded. */
  readonly guarded: readonly Change[];
  /** Identifies the guarded changes for an approval, or all changes if none is guarded. */
  readonly checksum: string;
}

/** A plan that exceeds these thresholds waits for an approval (docs/reconciler.md, rule 2). */
const MAX_SITE_RATIO = 0.1;
const MAX_OBJECT_RATIO = 0.3;
const MIN_OBJECTS = 10;
/** Items that a message lists. */
const MAX_LISTED = 10;

/** How many of `total` sites may vanish from git without an approval. */
export function maxVanishedSites(total: number): number {
  return Math.max(1, Math.floor(total * MAX_SITE_RATIO));
}

/** Identifies a change in approvals and checksums. */
export function changeId({ site, target, key, op }: Pick<Change, 'site' | 'target' | 'key' | 'op'>): string {
  return JSON.stringify([site, target, key, op]);
}

/**
 * Decides which changes may be applied, before the first write. A site with `state: absent` (a tombstone) was removed on
 * purpose. A site whose file is missing from the tree may be an accident: its deletes are guarded.
 */
export function judge(input: JudgeInput): Verdict {
  const known = new Map(input.sites.map((site) => [site.site, site]));
  const changes = input.plans.flatMap((plan) => plan.changes);
  const approvable = approvableBlocks(input, changes, known);
  const guarded = [...new Set(approvable.flatMap((block) => block.changes))];
  const approved = guarded.every((change) => input.approved.has(changeId(change)));
  const blocks = [...(approved ? [] : approvable), ...unconditionalBlocks(input, changes, known)];

  const held = holdReasons(input, blocks, known);
  return {
    allowed: changes.filter((change) => !held.has(change)),
    held,
    guarded,
    blocked: blocks.map(({ reason, detail, changes: which }) => ({ reason, detail, sites: sitesOf(which) })),
    checksum: contentHash((guarded.length > 0 ? guarded : changes).map(changeId).toSorted()),
  };
}

interface BlockedChanges {
  readonly reason: BlockReason;
  readonly detail: string;
  readonly changes: readonly Change[];
}

type Known = ReadonlyMap<string, JudgedSite>;

function holdReasons(
  { plans, unobservedNames }: JudgeInput,
  blocks: readonly BlockedChanges[],
  known: Known,
): Map<Change, HoldReason[]> {
  const held = new Map<Change, HoldReason[]>();
  const hold = (change: Change, reason: HoldReason) =>
    held.set(change, [...(held.get(change) ?? []), reason]);
  for (const { reason, changes: which } of blocks) for (const change of which) hold(change, reason);
  for (const change of waitingForNames(plans, nameConflicts(plans))) hold(change, 'conflict');
  for (const change of waitingForNames(plans, unobservedNames)) hold(change, 'unobserved');
  for (const change of plans.flatMap((plan) => plan.changes)) {
    const site = known.get(change.site);
    if (site?.unusable) hold(change, 'unusable');
    if (site?.suspend) hold(change, 'suspended');
  }
  return held;
}

/** Whether a guard applies, why (for people), and to which changes. */
type Rule = readonly [boolean, BlockReason, string, readonly Change[]];

/** Changes that may be an accident: an approval lets them through. */
function approvableBlocks(input: JudgeInput, changes: readonly Change[], known: Known): BlockedChanges[] {
  const vanished = changes.filter(({ site }) => !known.has(site));
  const sites = sitesOf(vanished);
  const total = input.sites.length + sites.length;
  const allowedSites = maxVanishedSites(total);
  const unconfirmed = vanished.filter(({ site }) => isUnconfirmed(input.removals.get(site)));
  const hostOf = (site: string) => input.removals.get(site)?.to;
  const isMoved = (site: string) => hostOf(site) !== undefined && !input.removals.get(site)?.protect;
  const shared = new Set(input.targets.flatMap(({ target, isShared }) => (isShared ? [target] : [])));
  const waiting = new Set(
    sitesOf(vanished.filter(({ site, target }) => shared.has(target) && isMoved(site))),
  );
  const rules: readonly Rule[] = [
    // This rule is first, because a status shows only the first block, and approving this one interrupts visitors.
    [
      waiting.size > 0,
      'not_taken_over',
      `the new host has not taken over all names yet: ${list([...waiting].map((site) => `${site} on ${hostOf(site)}`))}`,
      vanished.filter(({ site }) => waiting.has(site)),
    ],
    [
      input.sites.length === 0,
      'empty_desired_state',
      'the sites repository has no site of this host',
      vanished,
    ],
    [
      sites.length > allowedSites,
      'too_many_sites',
      `${sites.length} of ${counted(total, 'site')} vanished from git; at most ${allowedSites} may vanish without an approval`,
      vanished,
    ],
    ...input.targets.flatMap(({ target, countedAs, owned }): Rule[] => {
      const removed = removedOf(target, changes, known);
      const tooMany = owned >= MIN_OBJECTS && removed.length > owned * MAX_OBJECT_RATIO;
      if (countedAs === undefined || !tooMany) return [];
      const detail = `${removed.length} of ${owned} ${countedAs} would be deleted`;
      return [[true, 'too_many_records', detail, [...new Set([...removed, ...vanished])]]];
    }),
    [
      input.historyRewritten,
      'history_rewritten',
      'the branch was rewritten, so the missing sites may not have been removed on purpose',
      vanished,
    ],
    [
      unconfirmed.length > 0,
      'absence_unconfirmed',
      list(
        sitesOf(unconfirmed).map(
          (site) => input.removals.get(site)?.detail ?? `no commit of this branch removed ${site}`,
        ),
      ),
      unconfirmed,
    ],
  ];
  return rules
    .filter(([applies, , , which]) => applies && which.length > 0)
    .map(([, reason, detail, which]) => ({ reason, detail, changes: which }));
}

function isUnconfirmed(removal: Removal | undefined): boolean {
  return removal?.confirmed === false && removal.unreadable === undefined;
}

/** The deletes of a target, without those of a tombstone, which are deliberate. */
function removedOf(target: Target, changes: readonly Change[], known: Known): Change[] {
  return changes.filter(
    (change) =>
      change.target === target && change.op === 'delete' && known.get(change.site)?.state !== 'absent',
  );
}

/** Changes that no approval lets through: a setting or a manifest must change first, or the next pass decides. */
function unconditionalBlocks(input: JudgeInput, changes: readonly Change[], known: Known): BlockedChanges[] {
  const deletes = changes.filter(({ op }) => op === 'delete');
  const isRemoved = (site: string) => known.get(site)?.state !== 'present';
  const unreadableOf = (site: string) => (known.has(site) ? undefined : input.removals.get(site)?.unreadable);
  const isProtected = (site: string) => (known.get(site) ?? input.removals.get(site))?.protect === true;
  const takesOver = ({ site, observed, desired }: Change) =>
    observed?.owner.kind === 'foreign' && observed.owner.site === site && desired?.adopt !== true;
  const moving = changes.filter((change) => isRemoved(change.site) || takesOver(change));
  const protectedSites = sitesOf(moving).filter(isProtected);
  const blocks: BlockedChanges[] = protectedSites.map((site) => ({
    reason: 'site_protected',
    detail: `${site} is protected; set protect: false before you remove or move it`,
    changes: changes.filter((change) => change.site === site),
  }));
  if (input.frozen !== null) blocks.unshift({ reason: 'frozen', detail: input.frozen, changes });
  if (input.stateLost) {
    blocks.push({
      reason: 'state_lost',
      detail: 'the state of this host was lost; the next pass decides',
      changes: deletes,
    });
  }
  const unreadable = changes.filter(({ site }) => unreadableOf(site) !== undefined);
  for (const detail of new Set(unreadable.map(({ site }) => unreadableOf(site)))) {
    blocks.push({
      reason: 'history_unreadable',
      detail: `no site is removed while the history of its manifest can’t be read: ${detail}`,
      changes: unreadable.filter(({ site }) => unreadableOf(site) === detail),
    });
  }
  if (input.policy === 'upsert_only') {
    blocks.push({
      reason: 'upsert_only',
      detail: `${counted(deletes.length, 'delete is', 'deletes are')} not made, because the policy is upsert_only`,
      changes: deletes,
    });
  }
  return blocks.filter(({ changes: which }) => which.length > 0);
}

function sitesOf(changes: readonly Change[]): string[] {
  return [...new Set(changes.map(({ site }) => site))].sort();
}

/** Lists at most ten items, because the status of each affected site repeats the message. */
function list(items: readonly string[]): string {
  const rest = items.length - MAX_LISTED;
  return `${items.slice(0, MAX_LISTED).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}
