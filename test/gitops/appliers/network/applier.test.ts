import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { networkApplier } from '../../../../gitops/appliers/network/applier.ts';
import type { DockerNetwork } from '../../../../gitops/appliers/network/docker-networks.ts';
import type { FirewallState } from '../../../../gitops/appliers/network/firewall.ts';
import { parseRange } from '../../../../gitops/appliers/network/ranges.ts';
import { firewallNames } from '../../../../gitops/appliers/network/rules.ts';
import { testWith } from '../../../support/components.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const identity = { instance: 'unit', host: 'tag-1' };
const names = firewallNames(identity);
const { signal } = new AbortController();

/** An engine that keeps networks in memory, and a firewall in the given state. */
function host(state: FirewallState) {
  const all = new Map<string, DockerNetwork>();
  const applier = networkApplier({
    identity,
    names,
    ranges: [parseRange('10.213.0.0/25')].filter((range) => range !== null),
    networks: {
      list: async () => [...all.values()],
      async create({ name, mark, bridge, subnet }) {
        all.set(name, { id: name, name, mark, bridge, subnets: [subnet] });
        return true;
      },
      async remove(id) {
        all.delete(id);
      },
    },
    firewall: {
      check: async () => state,
      ensure: async () => (state.kind === 'denied' ? state : { kind: 'intact' }),
      remove: async () => state,
    },
    reserved: async () => [],
    async *losses() {},
  });
  const changes = async (...sites: string[]) => {
    const desired = sites.flatMap((site) => applier.desired(loadedManifest(site)));
    return applier.plan(desired, await applier.observe(desired, signal)).changes;
  };
  return { applier, all, changes };
}

test('without the right to change the firewall, networks exist, and the missing right is reported', async () => {
  const { applier, changes } = host({ kind: 'denied', reason: 'no right' });
  for (const change of await changes('shop')) await applier.apply(change, signal);
  expect(await changes('shop')).toEqual([]);
  expect(applier.shortfall?.()).toEqual({
    reason: 'NotIsolated',
    message: expect.stringContaining('no right'),
  });
});

test('a changed firewall is drift of each site, and no missing right is reported', async () => {
  const { applier, changes } = host({ kind: 'broken' });
  for (const change of await changes('shop')) await applier.apply(change, signal);
  expect((await changes('shop')).map(({ op }) => op)).toEqual(['update']);
  expect(applier.shortfall?.()).toBeNull();
});

test('a network that doesn’t isolate is replaced, and a range without free subnets is an error', async () => {
  const { applier, all, changes } = host({ kind: 'intact' });
  for (const change of await changes('shop', 'other')) await applier.apply(change, signal);
  const [shop] = [...all.values()];
  if (shop === undefined) throw new Error('there is no network');
  all.set(shop.name, { ...shop, bridge: 'br-of-somewhere' });
  const [update] = await changes('shop', 'other');
  if (update === undefined) throw new Error('nothing to do');
  await applier.apply(update, signal);
  expect(all.get(shop.name)?.bridge).toBe(shop.bridge);
  const [third] = (await changes('shop', 'other', 'third')).filter(({ site }) => site === 'third');
  if (third === undefined) throw new Error('nothing to do');
  await expect(applier.apply(third, signal)).rejects.toThrow('no subnet is free in CONTAINER_NETWORKS');
});

testWith('root', 'a process without rights is denied, with the reason', async () => {
  const module = fileURLToPath(new URL('../../../../gitops/appliers/network/firewall.ts', import.meta.url));
  const script = `
    const { firewall } = await import(${JSON.stringify(module)});
    const names = ${JSON.stringify(names)};
    const exceptions = async () => ({ preview: null, nameservers: [], ranges: [] });
    const one = firewall({ names, own: [], exceptions });
    console.log(JSON.stringify([await one.check(), await one.ensure()]));`;
  const args = ['--reuid', '65534', '--clear-groups', '--bounding-set=-all', process.execPath];
  const { stdout } = await execa('setpriv', [...args, '--input-type=module', '--eval', script]);
  const denied = { kind: 'denied', reason: expect.stringMatching(/CAP_NET_ADMIN|iptables/) };
  expect(JSON.parse(stdout)).toEqual([denied, denied]);
});
