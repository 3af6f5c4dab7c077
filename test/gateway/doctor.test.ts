import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ProxyBackend } from '../../gitops/appliers/proxy/backend.ts';
import { checkGateway } from '../../gitops/host-report/gateway-check.ts';
import { nodeLookup } from '../../gitops/host-report/node-lookup.ts';
import { describeWith } from '../support/components.ts';
import { gatewayBackend } from '../support/gateway/backend.ts';
import { HOP_SECRET, proxyHome, put } from '../support/proxy/proxy.ts';
import { startUpstream } from '../support/upstream.ts';

const ORIGIN = 'acme-origin.example.net';

describeWith('nginx', 'the check of a gateway by a site’s public name', () => {
  let home: Awaited<ReturnType<typeof proxyHome>>;
  let pod: Awaited<ReturnType<typeof startUpstream>>;
  let backend: ProxyBackend;

  beforeAll(async () => {
    home = await proxyHome();
    pod = await startUpstream();
    backend = gatewayBackend(home.settings);
    await backend.start();
    const { address, port } = pod;
    const origin = { kind: 'origin' as const, host: ORIGIN, upstreams: [{ address, port }] };
    await backend.install([put('acme', { site: 'acme', vhosts: [origin] })]);
  });
  afterAll(async () => {
    await backend?.close();
    await pod?.close();
    await home?.remove();
  });

  const certificateOf = async (host: string) => await readFile((await home.ca.pathsFor(host)).cert, 'utf8');
  type Deps = Parameters<typeof checkGateway>[1];
  const check = (changed: Partial<Deps> = {}) =>
    checkGateway(ORIGIN, {
      lookup: nodeLookup({ addresses: async () => ['127.0.0.1'], alias: async () => null }),
      port: backend.endpoint().tlsPort,
      hopSecret: HOP_SECRET,
      certificate: () => certificateOf(ORIGIN),
      ...changed,
    });

  test('passes where a pod answers and the hop secret is right', async () => {
    expect(await check()).toMatchObject({ name: 'gateway', status: 'passed', fix: null });
    expect(pod.seen.at(-1)?.url).toBe('/healthz');
  });

  test.each([
    ['another hop secret', { hopSecret: 'another-hop-secret-of-the-tests' }, /HOP_SECRET/],
    [
      'another certificate',
      { certificate: () => certificateOf('other.example.net') },
      /neither the delivered one/,
    ],
    ['no certificate', { certificate: async () => null }, /neither the delivered one/],
  ] satisfies [string, Partial<Deps>, RegExp][])('fails for %s', async (_, changed, detail) => {
    expect(await check(changed)).toMatchObject({ status: 'failed', detail: expect.stringMatching(detail) });
  });

  test('fails where no pod answers', async () => {
    await pod.close();
    expect(await check()).toMatchObject({ status: 'failed', detail: expect.stringMatching(/status 50[24]/) });
  });
});
