import { type Edit, type Step, stepsOf } from './steps.ts';

const commit = (...edits: Edit[]): Step => ({ kind: 'tree', way: 'commit', edits });
const put = (path: string, mode: '120000' | '160000' | '100644'): Edit => ({
  op: 'put',
  path,
  mode,
  content: { of: 'bytes', latin1: '../acme.yaml', times: 1 },
});
const move = (from: string, to: string): Edit => ({ op: 'move', from, to });
const manifest = (
  site: string,
  change: 'protected' | 'unknown key' | 'steals hostnames' | 'switched off',
  other = site,
): Edit => ({
  op: 'put',
  path: `${site}.yaml`,
  mode: '100644',
  content: { of: 'manifest', site, change, other },
});
/** Puts all sites back: without them, the next step would have nothing to break. */
const RESTORE: Step = { kind: 'operate', what: 'restore', site: 'acme' };

/** Steps of every test run, also on a slow machine: those that once removed or mixed up sites, and some of seed 1. */
export const CORPUS: readonly Step[] = [
  commit(put('acme.yaml', '120000')),
  RESTORE,
  commit(put('acme-shop.yaml', '160000')),
  RESTORE,
  commit(put('007.yaml/inner', '100644')),
  RESTORE,
  commit(move('acme.yaml', 'acme.yaml.disabled'), move('acme-shop.yaml', 'old/acme-shop.yaml')),
  RESTORE,
  // A protected site, a version that can't be read, and then its deletion.
  commit(manifest('acme', 'protected')),
  commit(manifest('acme', 'unknown key')),
  commit({ op: 'delete', path: 'acme.yaml' }),
  RESTORE,
  commit(manifest('acme-shop', 'steals hostnames', 'acme')),
  { kind: 'history', how: 'forget', back: 1 },
  // The provisioner starts while it must change nothing.
  { kind: 'operate', what: 'freeze', site: 'acme' },
  { kind: 'operate', what: 'restart', site: 'acme' },
  RESTORE,
  { kind: 'burst', what: 'webhooks', isFresh: true },
  { kind: 'burst', what: 'tokens', isFresh: true },
  { kind: 'leave', depth: 3, isFresh: true },
  { kind: 'plan', meanwhile: 'nothing', site: 'acme', isFresh: true },
  { kind: 'plan', meanwhile: 'another site', site: 'acme', isFresh: true },
  { kind: 'plan', meanwhile: 'this site', site: 'acme', isFresh: true },
  commit(manifest('acme', 'switched off')),
  RESTORE,
  ...stepsOf(1, 12),
];
