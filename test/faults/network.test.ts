import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { describeWith } from '../support/components.ts';
import { type NetworkLab, startNetworkLab } from '../support/containers/network-lab.ts';
import { eventually } from '../support/eventually.ts';

const SITE = 'shop-1';
const MOMENTS = ['before', 'after'] as const;
/** Effects in the order of a first start, then of the removal of the only site. */
const UP = ['write the rules', 'create a network', 'start a container', 'start a container'];
const DOWN = ['remove a container', 'remove a container', 'remove a network', 'remove the rules'];
const reached = z.object({ cut: z.string() });

describeWith(['docker', 'root'], 'a host that is killed with SIGKILL while it isolates a site', () => {
  // Needs root, because it writes the firewall of a network namespace.
  describe('in a network namespace of its own, as root', () => {
    let lab: NetworkLab;
    let before: string;
    beforeAll(async () => {
      lab = await startNetworkLab();
      before = await lab.exec('iptables', '-S');
    }, 120_000);
    afterAll(() => lab[Symbol.asyncDispose]());
    afterEach(async () => {
      await using host = await lab.startHost();
      await host.call('apply');
    });

    /** The rules of INPUT and of IPv6, our networks, and all containers, without their ids. */
    async function snapshot() {
      const networks = (await lab.docker.listNetworks()).filter(({ Name }) => Name.startsWith('tagyard-'));
      const containers = await lab.docker.listContainers({ all: true });
      return {
        rules: await lab.exec('iptables', '-S', 'INPUT'),
        rulesV6: await lab.exec('ip6tables', '-S'),
        networks: networks.map(({ Name, Labels, IPAM }) => [Name, Labels, IPAM?.Config]),
        containers: containers
          .map(({ Names, State, NetworkSettings }) => [Names, State, Object.keys(NetworkSettings.Networks)])
          .sort(),
      };
    }

    async function killAt(
      index: number,
      moment: (typeof MOMENTS)[number],
      ...sites: string[]
    ): Promise<string> {
      const host = await lab.startHost({ cut: { index, moment } });
      host.call('apply', ...sites).catch(() => undefined);
      const [message] = await once(host.child, 'message');
      const ended = once(host.child, 'exit');
      host.child.kill('SIGKILL');
      await ended;
      return reached.parse(message).cut;
    }

    test('reaches the same state at its next start, after a kill at any effect of a first start or removal', async () => {
      const whole = await lab.startHost();
      await whole.call('apply', SITE);
      const expected = await snapshot();
      await whole[Symbol.asyncDispose]();

      for (const [index, effect] of DOWN.entries()) {
        for (const moment of MOMENTS) {
          expect(await killAt(index + 1, moment)).toBe(`${moment} ${effect}`);
          await using next = await lab.startHost();
          await next.call('apply');
          // Rules without a network are removed by the check that repeats every few seconds.
          await eventually(async () =>
            expect(await lab.exec('iptables', '-S'), `${moment} ${effect}`).toBe(before),
          );
          expect((await snapshot()).networks).toEqual([]);
          await next.call('apply', SITE);
          expect(await next.call('plan', SITE)).toEqual([]);
        }
      }
      for (const [index, effect] of UP.entries()) {
        for (const moment of MOMENTS) {
          {
            await using empty = await lab.startHost();
            await empty.call('apply');
          }
          expect(await killAt(index + 1, moment, SITE)).toBe(`${moment} ${effect}`);
          await using next = await lab.startHost();
          await next.call('apply', SITE);
          expect(await next.call('plan', SITE)).toEqual([]);
          expect(await snapshot(), `${moment} ${effect}`).toEqual(expected);
        }
      }
    });
  });
});
