import { pino } from 'pino';
import { expect, test } from 'vitest';
import { listenAddresses } from '../../../../gitops/appliers/proxy/listen.ts';

const GATEWAY = '172.17.0.1';
const PUBLIC = '203.0.113.4';

async function listenOn(configured: string[], gateway: () => Promise<string | null>, isSystems = false) {
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => lines.push(line) });
  return { addresses: await listenAddresses(configured, { gateway, isSystems, log }), log: lines.join() };
}

test.each([
  ['one address', [PUBLIC], [PUBLIC, GATEWAY]],
  ['one address and the bridge’s', [PUBLIC, GATEWAY], [PUBLIC, GATEWAY]],
  ['all addresses', ['0.0.0.0'], ['0.0.0.0']],
])('a proxy on %s is reached by containers at the bridge', async (_what, configured, addresses) => {
  expect(await listenOn(configured, async () => GATEWAY)).toEqual({ addresses, log: '' });
});

test('if the bridge is not up or its address can’t be read, the proxy keeps its own addresses, and this is logged', async () => {
  for (const gateway of [async () => null, () => Promise.reject(new Error('no Docker'))]) {
    const { addresses, log } = await listenOn([PUBLIC], gateway);
    expect(addresses).toEqual([PUBLIC]);
    expect(log).toMatch(/previews don’t work: Docker’s default bridge is not up/);
  }
});

test('the system’s nginx is not made to depend on Docker, and the log says what to do', async () => {
  const { addresses, log } = await listenOn([PUBLIC], async () => GATEWAY, true);
  expect(addresses).toEqual([PUBLIC]);
  expect(log).toContain(`add ${GATEWAY} to PROXY_LISTEN`);
  expect(await listenOn([PUBLIC, GATEWAY], async () => GATEWAY, true)).toMatchObject({ log: '' });
});
