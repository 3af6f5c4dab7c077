import type { Applier, Change, ChangeOp, Resource, Target } from '../../../gitops/appliers/contract.ts';
import type { DesiredSite, DesiredState } from '../../../gitops/desired/desired-state.ts';
import { EMPTY_SITE_PLAN, type PassPlan, type SitePlan } from '../../../gitops/pass/pass.ts';
import { loadedManifest } from '../manifest.ts';

export function change(site: string, key: string, extra: Partial<Change> = {}): Change {
  const { target = 'kv' satisfies Target, op = 'create' satisfies ChangeOp } = extra;
  return { target, site, key, op, summary: `${op} ${key}`, ...extra };
}

export function resource(site: string, key: string, extra: Partial<Resource> = {}): Resource {
  return { target: 'kv', site, key, hash: 'h1', summary: key, adopt: false, spec: null, ...extra };
}

export function desiredSite(site: string, extra: Partial<DesiredSite> = {}): DesiredSite {
  return { site, blob: 'b1', manifest: loadedManifest(site), stalled: null, ...extra };
}

export function desiredState(sites: readonly DesiredSite[], extra: Partial<DesiredState> = {}): DesiredState {
  return {
    revision: 'r1',
    sites: new Map(sites.map((one) => [one.site, one])),
    onOtherHosts: new Map(),
    ...extra,
  };
}

/** A full plan over these sites that finds nothing to do, apart from `extra` and what `bySite` adds. */
export function passPlan(
  sites: readonly DesiredSite[],
  {
    bySite = {},
    ...extra
  }: Partial<Omit<PassPlan, 'bySite'>> & { bySite?: Record<string, Partial<SitePlan>> } = {},
): PassPlan {
  return {
    desired: desiredState(sites),
    observedAt: 0,
    scope: null,
    changes: [],
    conflicts: [],
    unobserved: new Map(),
    resources: () => [],
    uncertified: new Map(),
    shortfall: () => null,
    allowed: [],
    held: new Map(),
    drifted: new Set(),
    blocked: [],
    guarded: [],
    checksum: 'c0ffee',
    ...extra,
    bySite: new Map(Object.entries(bySite).map(([site, some]) => [site, { ...EMPTY_SITE_PLAN, ...some }])),
  };
}

/** An applier that does nothing, apart from `extra`. */
export function idleApplier(target: Target, extra: Partial<Applier> = {}): Applier {
  return {
    target,
    desired: () => [],
    observe: async () => [],
    plan: () => ({ changes: [], conflicts: [] }),
    apply: async () => undefined,
    ...extra,
  };
}
