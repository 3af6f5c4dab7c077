import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Observed, Resource } from '../../../gitops/appliers/contract.ts';
import { planResources } from '../../../gitops/appliers/plan.ts';
import { judge } from '../../../gitops/pass/guards.ts';

const key = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
const hash = fc.constantFrom('0011223344556677', '8899aabbccddeeff');
const siteName = fc.constantFrom('one', 'two');

const resource: fc.Arbitrary<Resource> = fc.record({
  target: fc.constant('dns' as const),
  site: siteName,
  key,
  hash,
  summary: fc.constant('a record'),
  adopt: fc.boolean(),
  spec: fc.constant(null),
});
const thing: fc.Arbitrary<Observed> = fc.record({
  target: fc.constant('dns' as const),
  key,
  hash: fc.option(hash.map((text) => text.slice(0, 8))),
  owner: fc.oneof(
    siteName.map((site) => ({ kind: 'ours' as const, site, host: 'tag-1' })),
    fc.constant({ kind: 'foreign' as const, by: 'a stranger' }),
  ),
  ref: fc.constant(null),
});
const desired = fc.uniqueArray(resource, { selector: (one) => one.key });
const world = fc.uniqueArray(thing, { selector: (one) => one.key });
const RUNS = { numRuns: 20_000 };

/** The things after a plan was applied. */
function applied(things: readonly Observed[], plan: ReturnType<typeof planResources>): Observed[] {
  const left = new Map(things.map((one) => [one.key, one]));
  for (const change of plan.changes) {
    if (change.desired === undefined) left.delete(change.key);
    else {
      const { target, site, hash: text } = change.desired;
      const owner = { kind: 'ours' as const, site, host: 'tag-1' };
      left.set(change.key, { target, key: change.key, hash: text.slice(0, 8), owner, ref: null });
    }
  }
  return [...left.values()];
}

describe('planResources', () => {
  test('has nothing to do after its own plan was applied', () => {
    fc.assert(
      fc.property(desired, world, (wanted, things) => {
        expect(planResources(wanted, applied(things, planResources(wanted, things))).changes).toEqual([]);
      }),
      RUNS,
    );
  });

  test('does not depend on the order of what it is given', () => {
    const shuffled = fc
      .tuple(desired, world)
      .chain(([wanted, things]) =>
        fc.tuple(
          fc.constant({ wanted, things }),
          fc.shuffledSubarray(wanted, { minLength: wanted.length }),
          fc.shuffledSubarray(things, { minLength: things.length }),
        ),
      );
    fc.assert(
      fc.property(shuffled, ([{ wanted, things }, otherWanted, otherThings]) => {
        expect(planResources(otherWanted, otherThings)).toEqual(planResources(wanted, things));
      }),
      RUNS,
    );
  });

  test('never touches what is not marked as ours, unless the manifest adopts it', () => {
    fc.assert(
      fc.property(desired, world, (wanted, things) => {
        const { changes, conflicts } = planResources(wanted, things);
        for (const change of changes) {
          if (change.observed?.owner.kind !== 'foreign') continue;
          expect(change).toMatchObject({ op: 'update', desired: { adopt: true } });
        }
        expect(conflicts.every((conflict) => changes.every((change) => change.key !== conflict.key))).toBe(
          true,
        );
      }),
      RUNS,
    );
  });

  test.each([
    ['a shared thing of another host for the same site', { isShared: true }, 'one', false, 'update'],
    ['a shared thing of another host for another site', { isShared: true }, 'two', false, 'conflict'],
    ['another host’s thing that isn’t shared', {}, 'one', false, 'conflict'],
    ['another host’s thing that the manifest adopts', {}, 'two', true, 'update'],
  ] as const)('plans for %s: $4', (_what, options, site, adopt, outcome) => {
    const wanted = {
      target: 'notes',
      site: 'one',
      key: 'a',
      hash: '0011223344556677',
      summary: '',
      adopt,
      spec: null,
    };
    const owner = { kind: 'foreign' as const, by: 'another host', site };
    const found = { target: 'notes', key: 'a', hash: null, owner, ref: null };
    const { changes, conflicts } = planResources([wanted], [found], options);
    expect(changes.map(({ op }) => op)).toEqual(outcome === 'update' ? ['update'] : []);
    expect(conflicts).toHaveLength(outcome === 'conflict' ? 1 : 0);
  });

  test('plans changes: upsert_only allows those that sync allows, except the deletes', () => {
    fc.assert(
      fc.property(desired, world, (wanted, things) => {
        const plan = planResources(wanted, things);
        const given = {
          sites: ['one', 'two'].map((site) => ({
            site,
            state: 'present' as const,
            protect: false,
            suspend: false,
            unusable: false,
          })),
          plans: [plan],
          targets: [{ target: 'dns', owned: 0 }],
          frozen: null,
          historyRewritten: false,
          stateLost: false,
          removals: new Map(),
          unobservedNames: [],
          approved: new Set<string>(),
        };
        const synced = judge({ ...given, policy: 'sync' }).allowed;
        expect(synced).toEqual(plan.changes);
        expect(judge({ ...given, policy: 'upsert_only' }).allowed).toEqual(
          synced.filter(({ op }) => op !== 'delete'),
        );
      }),
      RUNS,
    );
  });
});
