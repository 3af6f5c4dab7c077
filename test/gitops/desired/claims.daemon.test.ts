import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Claimant, claims, contestedNames, lostClaims } from '../../../gitops/desired/claims.ts';
import { manifestSchema } from '../../../sites/manifest/schema.ts';
import { manifestInput } from '../../support/manifest.ts';

const SITES = ['alpha', 'beta', 'gamma', 'delta'];
const base = new Map(
  SITES.map((site, number) => [site, manifestSchema.parse(manifestInput(site, number))] as const),
);

/** Sites with random edge hostnames and ports from small sets, each with its place in history. */
const claimants: fc.Arbitrary<Claimant[]> = fc.tuple(
  ...SITES.map((site) =>
    fc
      .record({
        name: fc.integer({ min: 0, max: 3 }),
        port: fc.integer({ min: 0, max: 3 }),
        since: fc.tuple(fc.nat(2), fc.nat(2)),
      })
      .map(({ name, port, since }) => {
        const manifest = base.get(site);
        if (manifest === undefined) throw new Error(`${site} has no manifest`);
        const hostnames = { ...manifest.hostnames, edge: `shared-${name}.example.net` };
        const ports = { ...manifest.ports, processing: 30_000 + port };
        return { manifest: { ...manifest, hostnames, ports }, since };
      }),
  ),
);
const names = ({ manifest }: Claimant) => [manifest.hostnames.edge, manifest.ports.processing];
const place = ({ since, manifest }: Claimant) => `${since.join(' ')} ${manifest.site}`;
const older = (a: Claimant, b: Claimant) => place(a) < place(b);
const RUNS = { numRuns: 20_000 };

describe('a contested name', () => {
  test('has one holder, and each loser loses to an older site that keeps the name', () => {
    fc.assert(
      fc.property(claimants, (all) => {
        const lost = new Map(lostClaims(all).map((claim) => [claim.site, claim]));
        const kept = all.filter(({ manifest }) => !lost.has(manifest.site));
        const held = kept.flatMap(names);
        expect(new Set(held).size).toBe(held.length);
        for (const { site, holder } of lost.values()) {
          const loser = all.find(({ manifest }) => manifest.site === site);
          const winner = kept.find(({ manifest }) => manifest.site === holder);
          if (loser === undefined || winner === undefined) throw new Error(`${site} lost to an unknown site`);
          expect(older(winner, loser)).toBe(true);
          expect(names(winner).some((name) => names(loser).includes(name))).toBe(true);
        }
      }),
      RUNS,
    );
  });

  test('never flaps: the result depends neither on the order nor on sites without contested names', () => {
    const shuffled = claimants.chain((all) =>
      fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
    );
    fc.assert(
      fc.property(shuffled, ([all, others]) => {
        const bySite = (list: ReturnType<typeof lostClaims>) =>
          list.toSorted((a, b) => (a.site < b.site ? -1 : 1));
        expect(bySite(lostClaims(others))).toEqual(bySite(lostClaims(all)));
        const concerned = contestedNames(all.map(({ manifest }) => manifest));
        const some = all.filter(({ manifest }) => concerned.has(manifest.site));
        expect(bySite(lostClaims(some))).toEqual(bySite(lostClaims(all)));
      }),
      RUNS,
    );
  });

  test('is found with all its claimants; with `among`, only if one of these sites claims it', () => {
    const asked = claimants.chain((all) => fc.tuple(fc.constant(all), fc.subarray(all)));
    fc.assert(
      fc.property(asked, ([all, some]) => {
        const manifests = all.map(({ manifest }) => manifest);
        const claimed = new Set(some.flatMap(({ manifest }) => claims(manifest)));
        const expected = [...contestedNames(manifests)].flatMap(([site, found]) => {
          const theirs = [...found].filter((name) => claimed.has(name)).sort();
          return theirs.length === 0 ? [] : [[site, theirs] as const];
        });
        const found = contestedNames(
          manifests,
          some.map(({ manifest }) => manifest),
        );
        expect([...found].map(([site, theirs]) => [site, [...theirs].sort()]).sort()).toEqual(
          expected.sort(),
        );
      }),
      RUNS,
    );
  });
});
