import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { describeWith } from '../support/components.ts';
import {
  HOST,
  type NetworkLab,
  ORIGIN_PORT,
  OUTSIDE,
  PORT,
  startNetworkLab,
  ULA,
} from '../support/containers/network-lab.ts';

const SITES = ['shop-1', 'shop-2'];
const [SHOP = '', NEIGHBOUR = ''] = SITES;

describeWith(['docker', 'root'], 'a container of a site', () => {
  // Needs root, because it writes the firewall of a network namespace.
  describe('on a host in a network namespace of its own, as root', () => {
    let lab: NetworkLab;
    let host: Awaited<ReturnType<NetworkLab['startHost']>>;
    beforeAll(async () => {
      lab = await startNetworkLab();
    }, 120_000);
    afterAll(() => lab[Symbol.asyncDispose]());
    afterEach(async () => {
      await host.call('apply');
      await host[Symbol.asyncDispose]();
    });

    /** The addresses of the lab by name, as seen from a container of `SHOP`. */
    async function places() {
      const neighbour = await lab.addressOf(await lab.nameOf(NEIGHBOUR));
      const own = await lab.addressOf(await lab.nameOf(SHOP));
      return {
        'the public internet': `${OUTSIDE.public} ${PORT}`,
        'the preview host': `${HOST.docker} ${ORIGIN_PORT}`,
        ...Object.fromEntries(
          lab.nameservers.map((address) => [`the nameserver ${address}`, `${address} 53`]),
        ),
        'a neighbour': `${neighbour.address} 8080`,
        'the bridge of a neighbour': `${neighbour.gateway} ${PORT}`,
        'its own bridge': `${own.gateway} ${PORT}`,
        'the preview port of its own bridge': `${own.gateway} ${ORIGIN_PORT}`,
        'the host': `${HOST.address} ${PORT}`,
        'the host by Docker’s bridge': `${HOST.docker} ${PORT}`,
        ...Object.fromEntries(
          Object.entries(OUTSIDE)
            .slice(1)
            .map(([name, address]) => [name, `${address} ${PORT}`]),
        ),
        ...Object.fromEntries(
          lab.nameservers.map((address) => [`another port of ${address}`, `${address} ${PORT}`]),
        ),
        'a local IPv6 address': `${ULA.world} ${PORT}`,
        'the host by IPv6': `${ULA.host} ${PORT}`,
        'the bridge by IPv6': `fe80::1%eth0 ${PORT}`,
      };
    }

    const isAllowed = (place: string) =>
      /^(?:the public internet|the preview host|the nameserver)/.test(place);
    async function expectIsolated(): Promise<void> {
      const targets = await places();
      const expected = Object.fromEntries(Object.keys(targets).map((place) => [place, isAllowed(place)]));
      expect(await lab.reaches(await lab.nameOf(SHOP), targets)).toEqual(expected);
    }

    test('reaches the internet and its preview host, and no neighbour, host, private or metadata address', async () => {
      host = await lab.startHost();
      await host.call('apply', ...SITES);
      // The control: a container without isolation reaches every one of these addresses.
      const Entrypoint = [lab.node, '--eval', 'setInterval(() => {}, 1000)'];
      const { id } = await lab.docker.createContainer({ Image: lab.image, name: 'control', Entrypoint });
      const control = lab.docker.getContainer(id);
      await control.start();
      const open = await lab.reaches('control', await places());
      await control.remove({ force: true });
      const closed = Object.entries(open).filter(([, reached]) => !reached);
      // Excluded: what Docker itself blocks. It separates networks, and has no IPv6 here.
      expect(
        closed.map(([place]) => place).filter((place) => !/IPv6|a neighbour|preview port/.test(place)),
      ).toEqual([]);
      await expectIsolated();
      expect(await host.call('plan', ...SITES)).toEqual([]);
    });

    test('is isolated again after a restart of Docker, and after a flush of the firewall', async () => {
      host = await lab.startHost();
      await host.call('apply', ...SITES);
      await lab.restartDocker();
      await host.call('apply', ...SITES);
      await expectIsolated();

      for (const command of ['iptables', 'ip6tables']) {
        const event = host.call('event');
        await lab.exec(command, '--flush');
        await lab.exec(command, '--policy', 'FORWARD', 'ACCEPT');
        // A firewall sends no events, so the provisioner checks it regularly.
        await event;
        const drift = SITES.map((site) => `network update ${site}`);
        expect(await host.call('plan', ...SITES)).toEqual(drift);
        await host.call('apply', ...SITES);
        expect(await host.call('plan', ...SITES)).toEqual([]);
      }
      await expectIsolated();
    });

    test('is isolated again by the next apply if the host’s own rules accept the packets', async () => {
      host = await lab.startHost();
      await host.call('apply', ...SITES);
      for (const chain of ['INPUT', 'FORWARD', 'DOCKER-USER']) {
        await lab.exec('iptables', '--insert', chain, '-p', 'tcp', '-j', 'ACCEPT');
      }
      expect(await host.call('plan', ...SITES)).toEqual(SITES.map((site) => `network update ${site}`));
      await host.call('apply', ...SITES);
      await expectIsolated();
      for (const chain of ['INPUT', 'FORWARD', 'DOCKER-USER']) {
        await lab.exec('iptables', '--delete', chain, '-p', 'tcp', '-j', 'ACCEPT');
      }
      expect(await host.call('plan', ...SITES)).toEqual([]);
    });

    test('is started again if it was connected to a further network', async () => {
      host = await lab.startHost();
      await host.call('apply', ...SITES);
      await lab.docker.getNetwork('bridge').connect({ Container: await lab.nameOf(SHOP) });
      expect(await host.call('plan', ...SITES)).toEqual([
        expect.stringMatching(`containers update ${SHOP}/processing/0/`),
      ]);
      await host.call('apply', ...SITES);
      await expectIsolated();
    });

    test('moves to its network by a swap if an older release has started it', async () => {
      const older = await lab.startHost({ ownNetwork: false });
      await older.call('apply', SHOP);
      await older[Symbol.asyncDispose]();
      host = await lab.startHost();
      const planned = await host.call('plan', ...SITES);
      expect(planned).toEqual(
        expect.arrayContaining([
          expect.stringMatching(`containers create ${SHOP}/processing`),
          expect.stringMatching(`containers delete ${SHOP}/processing`),
        ]),
      );
      await host.call('apply', ...SITES);
      expect(await host.call('plan', ...SITES)).toEqual([]);
      await expectIsolated();
    });

    test('has a network that is removed with its site; the rules are removed with the last site', async () => {
      host = await lab.startHost();
      const before = await lab.exec('iptables', '-S');
      await host.call('apply', ...SITES);
      const names = async () =>
        (await lab.docker.listNetworks())
          .map(({ Name }) => Name)
          .filter((name) => name.startsWith('tagyard-'));
      expect((await names()).sort()).toEqual(SITES.map((site) => `tagyard-lab-${site}`));
      await host.call('apply', SHOP);
      expect(await names()).toEqual([`tagyard-lab-${SHOP}`]);
      await host.call('apply');
      expect(await names()).toEqual([]);
      expect(await lab.exec('iptables', '-S')).toBe(before);
      expect(await lab.exec('ip6tables', '-S')).not.toContain('TAGYARD');
    });

    test('has a subnet of its own, even with more than Docker’s 31 networks, and after a restart', async () => {
      host = await lab.startHost({ range: '10.213.0.0/20' });
      // Parts of the range are taken: one by a route of the host, another by a foreign network of Docker.
      await lab.exec('ip', 'route', 'add', '10.213.0.64/26', 'via', '203.0.113.2');
      const foreign = await lab.docker.createNetwork({
        Name: 'foreign',
        IPAM: { Driver: 'default', Config: [{ Subnet: '10.213.0.128/25' }] },
      });
      const many = Array.from({ length: 34 }, (_, number) => `many-${number}`);
      const subnets = async () => {
        const all = await lab.docker.listNetworks();
        const ours = all.filter(({ Name }) => Name.startsWith('tagyard-'));
        return new Map(ours.map(({ Name, IPAM }) => [Name, IPAM?.Config?.[0]?.Subnet ?? '']));
      };
      await host.call('networks', ...many);
      const assigned = await subnets();
      expect(new Set(assigned.values()).size).toBe(many.length);
      for (const taken of ['10.213.0.64/26', '10.213.0.128/26', '10.213.0.192/26']) {
        expect([...assigned.values()]).not.toContain(taken);
      }
      await host[Symbol.asyncDispose]();
      host = await lab.startHost({ range: '10.213.0.0/20' });
      await host.call('networks', ...many);
      expect(await subnets()).toEqual(assigned);
      await host.call('networks');
      expect((await subnets()).size).toBe(0);
      await foreign.remove();
      await lab.exec('ip', 'route', 'del', '10.213.0.64/26');
    });
  });
});
