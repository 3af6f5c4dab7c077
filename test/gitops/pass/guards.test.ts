import { describe, expect, test } from 'vitest';
import type { Change, ChangeOp, Target } from '../../../gitops/appliers/contract.ts';
import { changeId, type JudgedSite, type JudgeInput, judge } from '../../../gitops/pass/guards.ts';
import { resource } from '../../support/gitops/plans.ts';
import { TRAITS } from '../../support/gitops/targets.ts';

const site = (name: string, extra: Partial<JudgedSite> = {}): JudgedSite => ({
  site: name,
  state: 'present',
  protect: false,
  suspend: false,
  unusable: false,
  ...extra,
});
const sites = (count: number) => Array.from({ length: count }, (_, index) => site(`site-${index}`));
const change = (name: string, op: ChangeOp = 'delete', target: Target = 'kv'): Change => ({
  target,
  site: name,
  key: `${name}/${target}`,
  op,
  summary: `${op} ${name}`,
});
/** Tagyard's own targets, of which DNS has the given number of records. */
const owning = (records: number) =>
  TRAITS.map((traits) => ({ ...traits, owned: traits.target === 'dns' ? records : 1_000 }));
const input = (given: Partial<JudgeInput> & { changes: readonly Change[] }): JudgeInput => ({
  sites: [],
  plans: [{ changes: given.changes, conflicts: [] }],
  unobservedNames: [],
  targets: owning(0),
  historyRewritten: false,
  stateLost: false,
  approved: new Set(),
  policy: 'sync',
  frozen: null,
  removals: new Map(),
  ...given,
});
const gone = (count: number, target: Target = 'kv') =>
  Array.from({ length: count }, (_, index) => change(`gone-${index}`, 'delete', target));

describe('judge', () => {
  test.each<[string, JudgeInput, string[]]>([
    ['one vanished site of eleven', input({ sites: sites(10), changes: gone(1) }), []],
    ['one vanished site of two', input({ sites: sites(1), changes: gone(1) }), []],
    ['two vanished sites of twenty', input({ sites: sites(18), changes: gone(2) }), []],
    ['two vanished sites of nineteen', input({ sites: sites(17), changes: gone(2) }), ['too_many_sites']],
    ['the last site vanished', input({ sites: [], changes: gone(1) }), ['empty_desired_state']],
    [
      'four of ten DNS records',
      input({
        sites: sites(20),
        targets: owning(10),
        changes: [1, 2, 3, 4].map((n) => ({ ...change('gone', 'delete', 'dns'), key: String(n) })),
      }),
      ['too_many_records'],
    ],
    [
      'four of nine DNS records, below the floor',
      input({
        sites: sites(20),
        targets: owning(9),
        changes: [1, 2, 3, 4].map((n) => ({ ...change('gone', 'delete', 'dns'), key: String(n) })),
      }),
      [],
    ],
    [
      'a rewritten history',
      input({ sites: sites(20), historyRewritten: true, changes: gone(1) }),
      ['history_rewritten'],
    ],
    ['a lost state', input({ sites: sites(20), stateLost: true, changes: gone(1) }), ['state_lost']],
    [
      'a vanished site whose history can’t be read, although its removal is approved',
      input({
        sites: sites(20),
        removals: new Map([['gone-0', { confirmed: false, protect: false, unreadable: 'bad object' }]]),
        approved: new Set(gone(1).map(changeId)),
        changes: gone(1),
      }),
      ['history_unreadable'],
    ],
    [
      'ten tombstones of ten, which were asked for',
      input({
        sites: sites(10).map((entry) => ({ ...entry, state: 'absent' as const })),
        changes: sites(10).map((entry) => change(entry.site)),
      }),
      [],
    ],
    [
      'a tombstone of a protected site',
      input({ sites: [site('shop', { state: 'absent', protect: true })], changes: [change('shop')] }),
      ['site_protected'],
    ],
  ])('given %s, the reasons of the blocks are $2', (_what, given, reasons) => {
    const verdict = judge(given);
    expect(verdict.blocked.map(({ reason }) => reason)).toEqual(reasons);
    expect(verdict.allowed).toHaveLength(reasons.length === 0 ? (given.plans[0]?.changes.length ?? 0) : 0);
  });

  test('counts the deletes of each target with `countedAs`, and names them by that word', () => {
    const targets = [
      { target: 'notes', countedAs: 'notes', owned: 10 },
      { target: 'kv', owned: 10 },
    ];
    const removed = (target: Target) =>
      [1, 2, 3, 4].map((n) => ({ ...change('gone', 'delete', target), key: String(n) }));
    const blocked = (target: Target) =>
      judge(input({ sites: sites(20), targets, changes: removed(target) })).blocked.map(
        ({ detail }) => detail,
      );
    expect(blocked('notes')).toEqual(['4 of 10 notes would be deleted']);
    expect(blocked('kv')).toEqual([]);
  });

  test.each([
    [1, '1 delete is not made'],
    [2, '2 deletes are not made'],
  ])('counts the deletes that upsert_only stops: %i', (count, detail) => {
    const { blocked } = judge(input({ sites: sites(20), changes: gone(count), policy: 'upsert_only' }));
    expect(blocked.map((block) => block.detail)).toEqual([`${detail}, because the policy is upsert_only`]);
  });

  test('blocks the removal of a moved site until its names are taken over, if a shared target has anything of it', () => {
    const targets = [
      { target: 'notes', isShared: true, owned: 0 },
      { target: 'kv', owned: 0 },
    ];
    const removals = new Map([['gone', { confirmed: true, protect: false, to: 'tag-2' }]]);
    const reasons = (target: Target) =>
      judge(
        input({ sites: sites(20), targets, removals, changes: [change('gone', 'delete', target)] }),
      ).blocked.map(({ reason }) => reason);
    expect(reasons('notes')).toEqual(['not_taken_over']);
    expect(reasons('kv')).toEqual([]);
  });

  test('allows creates and the removal of tombstones while vanished sites wait for an approval', () => {
    const changes = [...gone(5), change('new', 'create'), change('tomb')];
    const verdict = judge(input({ sites: [site('new'), site('tomb', { state: 'absent' })], changes }));
    expect(verdict.allowed.map(({ summary }) => summary)).toEqual(['create new', 'delete tomb']);
  });

  test.each([
    ['a suspended site', site('shop', { suspend: true })],
    ['a site without a usable manifest', site('shop', { unusable: true })],
  ])('changes nothing of %s', (_what, entry) => {
    expect(judge(input({ sites: [entry], changes: [change('shop', 'update')] })).allowed).toEqual([]);
  });

  test('holds what would serve a site under a name that others have or may have, and the deletes of its earlier names', () => {
    const needing = (op: ChangeOp, name = 'shop', target: Target = 'kv'): Change => ({
      ...change(name, op, target),
      desired: resource(name, op, { target, needsNames: true }),
    });
    const held = [needing('create'), needing('create', 'shop', 'route')];
    const earlier = [change('shop', 'delete'), change('shop', 'delete', 'dns')];
    const others = [
      needing('update'),
      needing('create', 'other'),
      change('shop', 'create'),
      change('shop', 'delete', 'containers'),
    ];
    const conflict = { target: 'dns', site: 'shop', key: 'a', detail: 'a is foreign' };
    const verdict = (changes: readonly Change[], ofName: { ofName?: true } = { ofName: true }) =>
      judge({
        ...input({ sites: [site('shop'), site('other')], changes }),
        plans: [{ changes, conflicts: [{ ...conflict, ...ofName }] }],
      });
    const { allowed, held: reasons } = verdict([...held, ...earlier, ...others]);
    expect(allowed).toEqual(others);
    expect([...reasons.values()].flat()).toEqual(Array(4).fill('conflict'));
    // Without a change that needs the names, nothing is held.
    expect(verdict([...earlier, ...others]).allowed).toEqual([...earlier, ...others]);
    expect(verdict([...held, ...earlier], {}).allowed).toEqual([...held, ...earlier]);
    const changes = [...held, ...earlier, ...others];
    const unobserved = judge({
      ...input({ sites: [site('shop'), site('other')], changes }),
      unobservedNames: [{ site: 'shop', target: 'dns' }],
    });
    expect(unobserved.allowed).toEqual(others);
    expect([...unobserved.held.values()].flat()).toEqual(Array(4).fill('unobserved'));
  });

  test('accepts an approval only for the plan that it names', () => {
    const guarded = input({ sites: sites(2), changes: gone(3) });
    const approved = new Set(judge(guarded).guarded.map(changeId));
    expect(judge({ ...guarded, approved }).allowed).toHaveLength(3);
    const grown = input({ sites: sites(2), changes: gone(4), approved });
    expect(judge(grown).allowed).toHaveLength(0);
  });
});
