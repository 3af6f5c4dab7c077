import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RetryableError, TerminalError } from '../../../base/errors.ts';
import type { Identity } from '../../../base/ownership.ts';
import type { Applier, Change, Observed, Resource } from '../../../gitops/appliers/contract.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { loadedManifest } from '../../support/manifest.ts';

/** One applier over a fresh world in which nothing carries a mark of `CONFORMANCE_IDENTITY`. */
export interface ConformanceSetup<Spec = unknown, Ref = unknown> {
  readonly applier: Applier<Spec, Ref>;
  /** What must be in place before this target can be applied for a site (the routing entry of a route, say). */
  prepare?(manifest: LoadedManifest): Promise<void>;
  /**
   * Creates a thing without our mark under the name of `resource`, and returns a function that reads it back as data.
   * Unset for a target whose names can't be foreign.
   */
  plantForeign?(resource: Resource<Spec>): Promise<() => Promise<unknown>>;
  /** Makes the world unreadable (API down, socket gone) until the returned function is called. */
  breakObserve(): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

interface ConformanceOptions {
  /** A change of the manifest that this target must see. */
  readonly change: (manifest: LoadedManifest) => LoadedManifest;
  /** Milliseconds for one test, for targets that start processes. */
  readonly timeoutMs?: number;
  /** The manifest of one of the two sites, `acme-shop` (0) and `beta-shop` (1). */
  readonly manifest?: (name: string, number: number) => LoadedManifest;
}

/** The instance and host of every applier that is set up for this suite. */
export const CONFORMANCE_IDENTITY: Identity = { instance: 'conformance', host: 'tag-1' };

/**
 * What holds for every applier, tested with what a suite sets up: the plan of its own output is empty; applying
 * twice equals once; order is stable; changes contain no secret; foreign things stay as they are; a failed
 * observation is an error, never an empty world.
 */
export function applierConformance<Spec, Ref>(
  name: string,
  setup: () => Promise<ConformanceSetup<Spec, Ref>>,
  options: ConformanceOptions,
): void {
  const { signal } = new AbortController();

  describe(`${name} keeps the applier contract`, { timeout: options.timeoutMs ?? 30_000 }, () => {
    let world: ConformanceSetup<Spec, Ref>;
    let applier: Applier<Spec, Ref>;
    const manifest = options.manifest ?? loadedManifest;
    const acme = manifest('acme-shop', 0);
    const beta = manifest('beta-shop', 1);

    beforeEach(async () => {
      world = await setup();
      applier = world.applier;
    });
    afterEach(async () => {
      await applier.close?.();
      await world.close();
    });

    const wantedOf = (...manifests: LoadedManifest[]) => manifests.flatMap((each) => applier.desired(each));

    async function planOf(...manifests: LoadedManifest[]) {
      const desired = wantedOf(...manifests);
      return applier.plan(desired, await applier.observe(desired, signal));
    }

    async function applyAll(changes: readonly Change<Spec, Ref>[]): Promise<void> {
      await Promise.all(changes.map((change) => applier.apply(change, signal)));
    }

    async function provision(...manifests: LoadedManifest[]): Promise<readonly Change<Spec, Ref>[]> {
      for (const each of manifests) await world.prepare?.(each);
      const { changes, conflicts } = await planOf(...manifests);
      expect(conflicts).toEqual([]);
      await applyAll(changes);
      return changes;
    }

    /** The things with our mark as data, without what may differ from one observation to the next. */
    async function oursOf(...manifests: LoadedManifest[]) {
      const found = await applier.observe(wantedOf(...manifests), signal);
      return found
        .filter(({ owner }) => owner.kind === 'ours')
        .map(({ key, hash, owner }: Observed<Ref>) => ({ key, hash, owner }))
        .sort((a, b) => (a.key < b.key ? -1 : 1));
    }

    test('plans creates for an empty world, and no change once these are applied', async () => {
      const changes = await provision(acme, beta);
      expect(changes.length).toBeGreaterThan(0);
      expect(new Set(changes.map(({ op }) => op))).toEqual(new Set(['create']));
      expect(await planOf(acme, beta)).toEqual({ changes: [], conflicts: [] });
    });

    test('ends in the same state when every change is applied twice', async () => {
      const changes = await provision(acme, beta);
      const once = await oursOf(acme, beta);
      await applyAll(changes);
      expect(await oursOf(acme, beta)).toEqual(once);
      expect(await planOf(acme, beta)).toEqual({ changes: [], conflicts: [] });
    });

    test('plans in one order, whatever the order of the input', async () => {
      const desired = wantedOf(acme, beta);
      const observed = await applier.observe(desired, signal);
      const plan = applier.plan(desired, observed);
      expect(applier.plan(desired.toReversed(), observed.toReversed())).toEqual(plan);
      const keys = plan.changes.map(({ key }) => key);
      expect(keys).toEqual(keys.toSorted());
    });

    test('desires the same for the same manifest', () => {
      expect(wantedOf(manifest('acme-shop', 0))).toEqual(wantedOf(acme));
      expect(wantedOf(acme).map(({ target }) => target)).toEqual(wantedOf(acme).map(() => applier.target));
    });

    test('notices a changed manifest, changes only its site, and converges again', async () => {
      await provision(acme, beta);
      const changed = options.change(acme);
      await world.prepare?.(changed);
      const { changes } = await planOf(changed, beta);
      expect(changes.length).toBeGreaterThan(0);
      expect(new Set(changes.map(({ site }) => site))).toEqual(new Set(['acme-shop']));
      await applyAll(changes);
      expect(await planOf(changed, beta)).toEqual({ changes: [], conflicts: [] });
    });

    test('observes a site within a scope as in a full observation', async () => {
      await provision(acme, beta);
      const changed = options.change(acme);
      const known = wantedOf(acme).map(({ key }) => key);
      const wanted = new Set([...known, ...wantedOf(changed).map(({ key }) => key)]);
      const acmes = (found: readonly Observed<Ref>[]) =>
        found
          .filter(
            ({ key, owner }) => wanted.has(key) || (owner.kind === 'ours' && owner.site === 'acme-shop'),
          )
          .sort((a, b) => (a.key < b.key ? -1 : 1));
      const whole = await applier.observe(wantedOf(changed, beta), signal);
      const scope = { sites: new Set(['acme-shop']), keys: new Set(known) };
      expect(acmes(await applier.observe(wantedOf(changed), signal, scope))).toEqual(acmes(whole));
    });

    test('removes only what is no longer desired, also when it is applied twice', async () => {
      await provision(acme, beta);
      const kept = (await oursOf(acme, beta)).filter(
        ({ owner }) => owner.kind === 'ours' && owner.site === 'beta-shop',
      );
      const { changes } = await planOf(beta);
      expect(new Set(changes.map(({ op, site }) => `${op} ${site}`))).toEqual(new Set(['delete acme-shop']));
      await applyAll(changes);
      await applyAll(changes);
      expect(await planOf(beta)).toEqual({ changes: [], conflicts: [] });
      expect(await oursOf(acme, beta)).toEqual(kept);
    });

    test('prints no secret', async () => {
      const { changes } = await planOf(acme);
      const printed = `${JSON.stringify(changes)}${changes.map(({ summary }) => summary).join()}`;
      const secret = acme.config.reveal();
      expect(printed).not.toContain(secret);
      expect(printed).not.toContain(Buffer.from(secret, 'base64').toString());
    });

    test('fails to observe an unreadable world instead of finding it empty', async () => {
      await provision(acme);
      const restore = await world.breakObserve();
      const outcome = await applier.observe(wantedOf(acme), signal).catch((error: unknown) => error);
      await restore();
      expect(
        [RetryableError, TerminalError].some((type) => outcome instanceof type),
        String(outcome),
      ).toBe(true);
      expect(await planOf(acme)).toEqual({ changes: [], conflicts: [] });
    });

    test('reports a foreign thing as a conflict, doesn’t change it, and takes it over only with adopt: true', async (context) => {
      const plant = world.plantForeign?.bind(world);
      if (plant === undefined) return context.skip('these names can’t be foreign');
      await world.prepare?.(acme);
      const [first] = wantedOf(acme);
      if (first === undefined) throw new Error('the applier desires nothing of a present site');
      const read = await plant(first);
      const before = await read();

      const plan = await planOf(acme);
      expect(plan.conflicts.map(({ key }) => key)).toEqual([first.key]);
      expect(plan.changes.map(({ key }) => key)).not.toContain(first.key);
      await applyAll(plan.changes);
      expect(await read()).toEqual(before);

      const adopting = { ...acme, adopt: true };
      await applyAll((await planOf(adopting)).changes);
      expect(await planOf(adopting)).toEqual({ changes: [], conflicts: [] });
    });

    test('never removes a foreign thing', async (context) => {
      const plant = world.plantForeign?.bind(world);
      if (plant === undefined) return context.skip('these names can’t be foreign');
      const [first] = wantedOf(acme);
      if (first === undefined) throw new Error('the applier desires nothing of a present site');
      const read = await plant(first);
      const before = await read();
      expect(await planOf()).toEqual({ changes: [], conflicts: [] });
      expect(await read()).toEqual(before);
    });
  });
}
