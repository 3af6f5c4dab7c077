import type { Change, Plan, Target, Traits } from '../appliers/contract.ts';
import { contentHash } from '../base/ownership.ts';

/** `sync` makes the world as the manifests are; `upsert_only` does the same but deletes nothing. */
export const POLICIES = ['sync', 'upsert_only'] as const;
export type Policy = (typeof POLICIES)[number];

/** What the judge must know of a site; a site of which something is left but that git no longer has isn't listed. */
export interface JudgedSite {
  readonly site: string;
  readonly state: 'present' | 'absent';
  readonly protect: boolean;
  readonly suspend: boolean;
  /** No usable manifest: what is there stays. */
  readonly held: boolean;
}

/** What git says of a site that isn't listed. */
export interface Removal {
  /** The history shows who took it away, or its file names another host. */
  readonly confirmed: boolean;
  /** The last manifest of it was protected. */
  readonly protect: boolean;
  /** The host that git has given the site to. */
  readonly to?: string;
}

export interface JudgeInput {
  readonly sites: readonly JudgedSite[];
  /** One plan a target; a target that couldn't be observed has none. */
  readonly plans: readonly Plan[];
  /** Of every target; `owned`: how many things of ours were there at the last check. */
  readonly targets: readonly (Traits & { readonly owned: number })[];
  readonly policy: Policy;
  /** Why nothing may be changed at all just now; `null`: it may. */
  readonly frozen: string | null;
  /** The branch was rewritten since the last pass. */
  readonly historyRewritten: boolean;
  /** What this host did before is unknown (first pass after its state was lost). */
  readonly stateLost: boolean;
  /** Of every site that isn't listed. */
  readonly removals: ReadonlyMap<string, Removal>;
  /** `changeId`s of what somebody approved. */
  readonly approved: ReadonlySet<string>;
}

/** Something that stops changes of these sites, for a person. */
export interface Block {
  readonly reason: BlockReason;
  readonly detail: string;
  readonly sites: readonly string[];
}

/** Why changes are stopped. Only those of `APPROVABLE` go through by an approval. */
export const BLOCK_REASONS = [
  'frozen',
  'empty_desired_state',
  'too_many_sites',
  'too_many_records',
  'history_rewritten',
  'absence_unconfirmed',
  'not_taken_over',
  'site_protected',
  'state_lost',
  'upsert_only',
] as const;
export type BlockReason = (typeof BLOCK_REASONS)[number];

export const APPROVABLE: ReadonlySet<BlockReason> = new Set([
  'empty_desired_state',
  'too_many_sites',
  'too_many_records',
  'history_rewritten',
  'absence_unconfirmed',
  'not_taken_over',
]);

export interface Verdict {
  readonly allowed: readonly Change[];
  readonly blocked: readonly Block[];
  /** What an approval lets through; empty where nothing is guarded. */
  readonly guarded: readonly Change[];
  /** Names the guarded changes, or all of them where none is guarded; `approve` takes it. */
  readonly checksum: string;
}

/** More than these in one plan wait for somebody's approval (reconciler rule 2). */
const SITE_SHARE = 0.1;
const THING_SHARE = 0.3;
const THING_FLOOR = 10;
/** Sites that a text names. */
const SHOWN = 10;

/** How many of `total` sites may vanish from git at once. */
export function vanishingLimit(total: number): number {
  return Math.max(1, Math.floor(total * SITE_SHARE));
}

/** One change, as approvals and checksums know it. */
export function changeId({ site, target, key, op }: Pick<Change, 'site' | 'target' | 'key' | 'op'>): string {
  return JSON.stringify([site, target, key, op]);
}

/**
 * Lets changes through or holds them, before the first write. A site that git says is absent (a tombstone) was asked
 * to go; a site that is merely no longer in the tree may be an accident, and is guarded.
 */
export function judge(input: JudgeInput): Verdict {
  const known = new Map(input.sites.map((site) => [site.site, site]));
  const changes = input.plans.flatMap((plan) => plan.changes);
  const guards = guard(input, changes, known);
  const guarded = [...new Set(guards.flatMap((one) => one.changes))];
  const approved = guarded.every((change) => input.approved.has(changeId(change)));
  const stops = [...(approved ? [] : guards), ...refusals(input, changes, known)];

  const stopped = new Set(stops.flatMap((stop) => stop.changes));
  const allowed = changes.filter((change) => {
    const entry = known.get(change.site);
    return !stopped.has(change) && !entry?.held && !entry?.suspend;
  });
  return {
    allowed,
    guarded,
    blocked: stops.map(({ reason, detail, changes: which }) => ({ reason, detail, sites: sitesOf(which) })),
    checksum: contentHash((guarded.length > 0 ? guarded : changes).map(changeId).toSorted()),
  };
}

interface Hold {
  readonly reason: BlockReason;
  readonly detail: string;
  readonly changes: readonly Change[];
}

type Known = ReadonlyMap<string, JudgedSite>;

/** Whether it applies, why, for a person, and to which changes. */
type Rule = readonly [boolean, BlockReason, string, readonly Change[]];

/** What may be meant and may be an accident: somebody must say so. */
function guard(input: JudgeInput, changes: readonly Change[], known: Known): Hold[] {
  const vanished = changes.filter(({ site }) => !known.has(site));
  const sites = sitesOf(vanished);
  const total = input.sites.length + sites.length;
  const allowedSites = vanishingLimit(total);
  const unconfirmed = vanished.filter(({ site }) => input.removals.get(site)?.confirmed === false);
  const hostOf = (site: string) => input.removals.get(site)?.to;
  const moves = (site: string) => hostOf(site) !== undefined && !input.removals.get(site)?.protect;
  const shared = new Set(input.targets.flatMap(({ target, isShared }) => (isShared ? [target] : [])));
  const waiting = new Set(sitesOf(vanished.filter(({ site, target }) => shared.has(target) && moves(site))));
  const rules: readonly Rule[] = [
    // First, since its approval costs visitors: it is what a status shows.
    [
      waiting.size > 0,
      'not_taken_over',
      `the new host has not taken over all names yet: ${some([...waiting].map((site) => `${site} on ${hostOf(site)}`))}`,
      vanished.filter(({ site }) => waiting.has(site)),
    ],
    [
      input.sites.length === 0,
      'empty_desired_state',
      'the sites repository asks for no site at all',
      vanished,
    ],
    [
      sites.length > allowedSites,
      'too_many_sites',
      `${sites.length} of ${total} sites vanished from git; ${allowedSites} may at once`,
      vanished,
    ],
    ...input.targets.flatMap(({ target, countedAs, owned }): Rule[] => {
      const removed = removedOf(target, changes, known);
      const tooMany = owned >= THING_FLOOR && removed.length > owned * THING_SHARE;
      if (countedAs === undefined || !tooMany) return [];
      const detail = `${removed.length} of ${owned} ${countedAs} would go`;
      return [[true, 'too_many_records', detail, [...new Set([...removed, ...vanished])]]];
    }),
    [
      input.historyRewritten,
      'history_rewritten',
      'the branch was rewritten, so what vanished may not have been removed on purpose',
      vanished,
    ],
    [
      unconfirmed.length > 0,
      'absence_unconfirmed',
      `no commit of this branch removed ${some(sitesOf(unconfirmed))}`,
      unconfirmed,
    ],
  ];
  return rules
    .filter(([applies, , , which]) => applies && which.length > 0)
    .map(([, reason, detail, which]) => ({ reason, detail, changes: which }));
}

/** The deletes of a target, without those of a tombstone: those were asked for. */
function removedOf(target: Target, changes: readonly Change[], known: Known): Change[] {
  return changes.filter(
    (change) =>
      change.target === target && change.op === 'delete' && known.get(change.site)?.state !== 'absent',
  );
}

/** What no approval lets through: a setting, a manifest or time must change first. */
function refusals(input: JudgeInput, changes: readonly Change[], known: Known): Hold[] {
  const deletes = changes.filter(({ op }) => op === 'delete');
  const isLeaving = (site: string) => known.get(site)?.state !== 'present';
  const isProtected = (site: string) => (known.get(site) ?? input.removals.get(site))?.protect === true;
  const takesOver = ({ site, observed, desired }: Change) =>
    observed?.owner.kind === 'foreign' && observed.owner.site === site && desired?.adopt !== true;
  const moving = changes.filter((change) => isLeaving(change.site) || takesOver(change));
  const protectedSites = sitesOf(moving).filter(isProtected);
  const stops: Hold[] = protectedSites.map((site) => ({
    reason: 'site_protected',
    detail: `${site} is protected; set protect: false before it is removed or moved`,
    changes: changes.filter((change) => change.site === site),
  }));
  if (input.frozen !== null) stops.unshift({ reason: 'frozen', detail: input.frozen, changes });
  if (input.stateLost) {
    stops.push({
      reason: 'state_lost',
      detail: 'this host’s own state was lost; the next pass decides',
      changes: deletes,
    });
  }
  if (input.policy === 'upsert_only') {
    stops.push({
      reason: 'upsert_only',
      detail: `${deletes.length} removals are left undone, since the policy is upsert_only`,
      changes: deletes,
    });
  }
  return stops.filter(({ changes: which }) => which.length > 0);
}

function sitesOf(changes: readonly Change[]): string[] {
  return [...new Set(changes.map(({ site }) => site))].sort();
}

/** Each of them shows this text: it mustn't grow with their number. */
function some(items: readonly string[]): string {
  const rest = items.length - SHOWN;
  return `${items.slice(0, SHOWN).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}
