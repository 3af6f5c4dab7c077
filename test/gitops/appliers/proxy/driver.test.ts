import { expect, test } from 'vitest';
import type { ProxySettings } from '../../../../gitops/appliers/proxy/backend.ts';
import { proxyDriver } from '../../../../gitops/appliers/proxy/driver.ts';
import { proxySettings } from '../../../../gitops/appliers/proxy/settings.ts';

/** The driver that is used for these settings, and what it gets. */
async function chosen(env: Record<string, string>) {
  const calls: { driver: string; settings: ProxySettings }[] = [];
  const driver = (name: string) => async () => (settings: ProxySettings) => {
    calls.push({ driver: name, settings });
    throw new Error(name);
  };
  const deps = {
    stateDir: '/state',
    listen: ['127.0.0.1'],
    hopSecret: 'a-hop-secret-of-a-test',
    challengeKey: null,
    identity: { instance: 'test', host: 'tag-1' },
    certificates: { pathsFor: async () => null, retain: async () => undefined },
    ranges: { current: () => ['192.0.2.0/24'] },
    now: () => 0,
    log: { info: () => undefined, warn: () => undefined },
    drivers: { nginx: driver('nginx'), embedded: driver('embedded') },
  };
  const settings = proxySettings.parse({ EDGE_UPSTREAM: 'http://127.0.0.1:8787', ...env });
  await expect(proxyDriver(settings, deps)).rejects.toThrow();
  return calls[0];
}

test.each(['nginx', 'embedded'])('PROXY_DRIVER=%s chooses the driver', async (name) => {
  expect(await chosen({ PROXY_DRIVER: name })).toMatchObject({
    driver: name,
    settings: { prefix: '/state/proxy' },
  });
});

test.each([
  ['http://127.0.0.1:8787', { scheme: 'http', address: '127.0.0.1', port: 8787 }],
  ['http://127.0.0.1', { scheme: 'http', address: '127.0.0.1', port: 80 }],
  ['https://203.0.113.10', { scheme: 'https', address: '203.0.113.10', port: 443 }],
])('EDGE_UPSTREAM=%s is read as %j', async (text, edgeUpstream) => {
  expect((await chosen({ EDGE_UPSTREAM: text }))?.settings).toMatchObject({ edgeUpstream });
});

test.each([
  [{}, 30_000_000],
  [{ SITE_LOG_MEGABYTES: '5' }, 5_000_000],
])('%j limits a site’s logs to %i bytes', async (env, logBytes) => {
  expect((await chosen(env))?.settings).toMatchObject({ logBytes });
});

test('the proxy trusts Cloudflare’s ranges and the operator’s', async () => {
  const { settings } = (await chosen({ TRUSTED_PROXIES: '10.0.0.0/8' })) ?? {};
  expect(settings?.trusted?.()).toEqual({ cloudflare: ['192.0.2.0/24'], own: ['10.0.0.0/8'] });
});
