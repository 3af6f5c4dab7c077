import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

test('without the right to change the firewall, networks are created, and the missing right is reported', async () => {
  const { applier, changes } = host({ kind: 'denied', reason: 'no right' });
  for (const change of await changes('shop')) await applier.apply(change, signal);
  expect(await changes('shop')).toEqual([]);
  expect(applier.shortfall?.()).toEqual({
    reason: 'NotIsolated',
    message: expect.stringContaining('no right'),
  });
});

test('wrong firewall rules are rewritten in every drift mode, and are no drift or shortfall', async () => {
  const { applier, changes } = host({ kind: 'broken' });
  for (const change of await changes('shop')) await applier.apply(change, signal);
  const [update] = await changes('shop');
  expect(update).toMatchObject({ op: 'update', observed: { outdated: true } });
  expect(update?.observed?.found).toContain('firewall rules');
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
  expect(update.observed).toMatchObject({ found: expect.stringContaining('does not isolate') });
  expect(update.observed).not.toHaveProperty('outdated');
  await applier.apply(update, signal);
  expect(all.get(shop.name)?.bridge).toBe(shop.bridge);
  const [third] = (await changes('shop', 'other', 'third')).filter(({ site }) => site === 'third');
  if (third === undefined) throw new Error('nothing to do');
  await expect(applier.apply(third, signal)).rejects.toThrow('no subnet is free in CONTAINER_NETWORKS');
});

const MODULE = fileURLToPath(new URL('../../../../gitops/appliers/network/firewall.ts', import.meta.url));
/** Prints the outcome of a check and of a change, or the name of its error. */
const SCRIPT = `
  const { firewall } = await import(${JSON.stringify(MODULE)});
  const names = ${JSON.stringify(names)};
  const exceptions = async () => ({ preview: null, nameservers: [], ranges: [] });
  const one = firewall({ names, own: [], exceptions });
  const nameOf = (error) => error.name;
  console.log(JSON.stringify([await one.check().catch(nameOf), await one.ensure().catch(nameOf)]));`;
const ARGS = ['--input-type=module', '--eval', SCRIPT];

testWith(['root', 'iptables'], 'a process without rights is denied, with the reason', async () => {
  const args = ['--reuid', '65534', '--clear-groups', '--bounding-set=-all', process.execPath, ...ARGS];
  const { stdout } = await execa('setpriv', args);
  const denied = { kind: 'denied', reason: expect.stringMatching(/CAP_NET_ADMIN|iptables/) };
  expect(JSON.parse(stdout)).toEqual([denied, denied]);
});

test('while another program holds the firewall, a change fails as retryable, not as a missing right', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tagyard-iptables-'));
  try {
    const held = '#!/bin/sh\necho "Another app is currently holding the xtables lock." >&2\nexit 4\n';
    for (const name of ['iptables', 'ip6tables']) await writeFile(join(folder, name), held, { mode: 0o755 });
    const env = { PATH: `${folder}:${process.env.PATH}` };
    const { stdout } = await execa(process.execPath, ARGS, { env });
    expect(JSON.parse(stdout)).toEqual(['RetryableError', 'RetryableError']);
  } finally {
    await rm(folder, { recursive: true });
  }
});
