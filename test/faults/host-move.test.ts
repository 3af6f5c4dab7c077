import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { addressOf, standing } from '../support/faults/operations.ts';
import { converged, fullPass, type Stage, stage } from '../support/faults/stage.ts';
import type { RunningDaemon } from '../support/gitops/daemon.ts';
import { type Gate, startGate } from '../support/gitops/gate.ts';
import type { DaemonSettings } from '../support/gitops/settings.ts';

const HOSTS = ['tag-1', 'tag-3'] as const;
type Host = (typeof HOSTS)[number];
const ADDRESSES: Readonly<Record<Host, string>> = { 'tag-1': '198.51.100.4', 'tag-3': '198.51.100.5' };

describe('a site that moves to another host', () => {
  let on: Stage;
  /** Each host has containers and a proxy of its own; all hosts use one Cloudflare account. */
  let gates: Readonly<Record<Host, Gate>>;
  const daemons = new Map<Host, RunningDaemon>();
  /** What was missing at any moment, as text. */
  const gaps: string[] = [];
  let writes = 0;

  beforeEach(async () => {
    on = await stage();
    gates = { 'tag-1': on.gate, 'tag-3': await startGate(on.emulator.url) };
    gaps.length = 0;
    await on.plantForeign();
    await on.push({ acme: of('acme', 'tag-1'), beta: of('beta', 'tag-1'), core: of('core', 'tag-3') });
    for (const host of HOSTS) await start(host);
    for (const host of HOSTS) await settled(host);
    for (const gate of Object.values(gates)) {
      gate.watch(({ kind, label }, moment) => {
        if (kind !== 'world') return false;
        writes += 1;
        gaps.push(...missing().map((what) => `${moment} ${label}: ${what}`));
        return false;
      });
    }
  });
  afterEach(async () => {
    for (const daemon of daemons.values()) await daemon.kill();
    daemons.clear();
    await gates?.['tag-3'].close();
    await on?.close();
  });

  const of = (site: string, host: Host) =>
    on.manifest(site, ['acme', 'beta', 'core'].indexOf(site), { host });
  async function start(host: Host): Promise<void> {
    const { cloudflare } = on.settings();
    const settings: Partial<DaemonSettings> = {
      host,
      hostAddress: ADDRESSES[host],
      stateDir: join(on.dir, `state-${host}`),
      worldUrl: gates[host].url,
      cloudflare: { ...cloudflare, url: gates[host].cloudflareUrl },
    };
    daemons.set(host, await on.start(settings));
  }
  const daemon = (host: Host): RunningDaemon => {
    const running = daemons.get(host);
    if (running === undefined) throw new Error(`${host} doesn't run`);
    return running;
  };
  async function settled(host: Host): Promise<void> {
    await eventually(async () => expect((await daemon(host).sites()).revision).toBe(await on.repo.head()));
    await converged(daemon(host));
  }
  const local = (host: Host, site: string) => {
    const { containers, proxy } = gates[host].world;
    const count = (world: Gate['world'][string] | undefined) =>
      [...(world ?? [])].filter(([, { mark }]) => mark?.includes(` ${host} ${site} `)).length;
    return { containers: count(containers), proxy: count(proxy) };
  };
  const WHOLE = { containers: 2, proxy: 1 };
  const NOTHING = { containers: 0, proxy: 0 };

  /** What a site lacks at Cloudflare, and its names that lead to a host on which it doesn't run completely. */
  function missing(): string[] {
    const world = on.snapshot();
    return ['acme', 'beta', 'core'].flatMap((site) => {
      const { kv, routes, dns } = standing(world, site);
      const found = JSON.stringify({ kv, routes, dns });
      const short = found === JSON.stringify({ kv: 4, routes: 1, dns: 3 }) ? [] : [`${site} has ${found}`];
      const astray = ['origin', 'preview'].flatMap((which) => {
        const address = addressOf(world, `${site}-${which}.example.net`).content;
        const host = HOSTS.find((one) => ADDRESSES[one] === address);
        const up = host !== undefined && JSON.stringify(local(host, site)) === JSON.stringify(WHOLE);
        return up ? [] : [`${site}’s ${which} leads to ${address}, where it isn't up`];
      });
      return [...short, ...astray];
    });
  }
  /** The hosts in a site's ownership marks, of the resources that all hosts can write to. */
  const hostsOf = (site: string) => {
    const { kv, dns } = on.snapshot();
    const marks = [...kv.map(({ metadata }) => metadata), ...dns.map(({ comment }) => comment)];
    const owned = marks.flatMap((mark) => / (tag-\d) (\S+) /.exec(String(mark)) ?? []);
    return new Set(owned.filter((_, at) => at % 3 === 1 && owned[at + 1] === site));
  };

  test('moves name by name to another host and back, without a gap and without both hosts writing alternately', async () => {
    const foreign = on.snapshot().dns.filter(({ comment }) => !/ (acme|beta|core) /.test(String(comment)));
    for (const [from, to] of [
      ['tag-1', 'tag-3'],
      ['tag-3', 'tag-1'],
    ] as const) {
      const others = on.snapshot().kv.filter(({ metadata }) => !String(metadata).includes(' acme '));
      await on.push({ acme: of('acme', to) });
      await settled(to);
      expect(hostsOf('acme')).toEqual(new Set([to]));
      await fullPass(daemon(from));
      await settled(from);
      expect(gaps).toEqual([]);
      expect(local(to, 'acme')).toEqual(WHOLE);
      expect(local(from, 'acme')).toEqual(NOTHING);
      expect(on.snapshot().kv.filter(({ metadata }) => !String(metadata).includes(' acme '))).toEqual(others);
      expect(on.snapshot().dns).toEqual(expect.arrayContaining(foreign));
      // Neither host writes anything more.
      writes = 0;
      for (let round = 0; round < 2; round += 1) for (const host of HOSTS) await fullPass(daemon(host));
      expect(writes).toBe(0);
      await on.expectDelivered();
    }
    expect(local('tag-1', 'beta')).toEqual(WHOLE);
    expect(local('tag-3', 'core')).toEqual(WHOLE);
  });

  test('stays served by the old host until the new one runs, even if the old one starts again meanwhile', async () => {
    await daemon('tag-3').kill();
    await on.push({ acme: of('acme', 'tag-3') });
    await daemon('tag-1').kill();
    await start('tag-1');
    await eventually(async () =>
      expect((await daemon('tag-1').sites()).sites.find(({ site }) => site === 'acme')).toMatchObject({
        reason: 'Blocked',
        message: expect.stringContaining('acme on tag-3'),
      }),
    );
    await fullPass(daemon('tag-1'));
    expect(missing()).toEqual([]);
    expect(local('tag-1', 'acme')).toEqual(WHOLE);

    await start('tag-3');
    await settled('tag-3');
    await fullPass(daemon('tag-1'));
    await settled('tag-1');
    expect(gaps).toEqual([]);
    expect(hostsOf('acme')).toEqual(new Set(['tag-3']));
    expect([local('tag-1', 'acme'), local('tag-3', 'acme')]).toEqual([NOTHING, WHOLE]);
  });
});
