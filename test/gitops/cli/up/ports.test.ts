import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { assignPorts } from '../../../../gitops/cli/up/ports.ts';

/** Requests a free port for each variable, so that the tests need no fixed port. */
const ANY = { MANAGEMENT_PORT: '0', PROVISIONER_PORT: '0', EDGE_PORT: '0', PROXY_PORT: '0' };

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});
async function occupyPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('a TCP server has an address');
  return address.port;
}

describe('assignPorts', () => {
  test('picks a different port for each part and remembers them', async () => {
    const { ports, remember } = await assignPorts(ANY, {});
    expect(new Set(Object.values(ports)).size).toBe(Object.keys(ports).length);
    expect(remember).toEqual(ports);
  });

  test('picks the remembered ports again', async () => {
    const { ports } = await assignPorts(ANY, {});
    expect((await assignPorts(ANY, ports)).ports).toEqual(ports);
  });

  test('picks another port if the remembered one is in use', async () => {
    const shop = await occupyPort();
    const { ports, remember } = await assignPorts(ANY, { shop });
    expect(ports.shop).not.toBe(shop);
    expect(remember.shop).toBe(ports.shop);
  });

  test('picks another port if two parts remember the same one', async () => {
    const { ports } = await assignPorts(ANY, {});
    const again = await assignPorts(ANY, { vendor: ports.shop, shop: ports.shop });
    expect(again.ports.shop).not.toBe(again.ports.vendor);
  });

  test('takes a requested port and does not remember it', async () => {
    const { ports } = await assignPorts(ANY, {});
    const again = await assignPorts({ ...ANY, EDGE_PORT: String(ports.edge) }, {});
    expect(again.ports.edge).toBe(ports.edge);
    expect(again.remember).not.toHaveProperty('edge');
  });

  test('picks another port if the remembered one is requested for a later part', async () => {
    const { ports } = await assignPorts(ANY, {});
    const again = await assignPorts({ ...ANY, SHOP_PORT: String(ports.verification) }, ports);
    expect(again.ports.shop).toBe(ports.verification);
    expect(again.ports.verification).not.toBe(ports.verification);
  });

  test('refuses a requested port that is in use, and names its variable', async () => {
    const port = await occupyPort();
    await expect(assignPorts({ ...ANY, EDGE_PORT: String(port) }, {})).rejects.toThrow(
      `port ${port} (EDGE_PORT) is in use`,
    );
  });

  test('refuses one port for two parts', async () => {
    const { ports } = await assignPorts(ANY, {});
    const same = { PROVISIONER_PORT: String(ports.edge), EDGE_PORT: String(ports.edge) };
    await expect(assignPorts({ ...ANY, ...same }, {})).rejects.toThrow('(EDGE_PORT) is in use');
  });

  test.each(['http', '-1', '65536', '80.5'])('refuses EDGE_PORT=%s', async (text) => {
    await expect(assignPorts({ ...ANY, EDGE_PORT: text }, {})).rejects.toThrow(
      `EDGE_PORT=${text} is not a port`,
    );
  });
});
