import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { Vhost } from '../../../../../gitops/appliers/proxy/desired.ts';
import { forwardedHeaders } from '../../../../../gitops/appliers/proxy/embedded/forward.ts';
import { droppedHeaders } from '../../../../../gitops/appliers/proxy/policy.ts';

const SECRET = 'hop-secret-of-the-tests-0123456789';
const PREVIOUS = 'hop-secret-before-it-0123456789';
const CONTAINERS = [{ address: '127.0.0.1', port: 1 }];
const VHOSTS: Readonly<Record<Vhost['kind'], Vhost>> = {
  origin: { kind: 'origin', host: 'acme-origin.example.net', upstreams: CONTAINERS },
  preview: { kind: 'preview', host: 'acme-preview.example.net', upstreams: CONTAINERS },
  policy: { kind: 'policy', host: 'acme-policy-01234', tls: 'inside', token: '', script: '' },
  custom: { kind: 'custom', host: 'metrics.acme.example', edgeHost: 'acme.example.net' },
};

/** The headers that the proxy would forward from a real request with these headers. */
async function forwarded(kind: Vhost['kind'], headers: Record<string, string>) {
  const server = createServer((_request, response) => response.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo; // a TCP server's address is never a string
    const arrived: Promise<[IncomingMessage]> = once(server, 'request') as never; // typed as any[]
    const sent = request({ port, host: '127.0.0.1', headers });
    sent.on('response', (response) => response.resume()).end();
    const [incoming] = await arrived;
    await once(sent, 'close');
    const asked = { host: VHOSTS[kind].host, port: '', target: '/' };
    return forwardedHeaders(incoming, VHOSTS[kind], asked, {
      hopSecret: SECRET,
      previousHopSecret: PREVIOUS,
      visitorOf: (address) => ({ address, scheme: null }),
    });
  } finally {
    server.close();
  }
}

describe.each(['origin', 'preview', 'custom'] as const)('visitors’ headers to the %s host', (kind) => {
  test.each(['x-gtm-identifier', 'x-gtm-default-domain', 'x-gtm-api-key', 'x_gtm_identifier', 'x-gtm-new'])(
    '%s doesn’t reach a container',
    async (name) => {
      expect(JSON.stringify(await forwarded(kind, { [name]: 'evil' }))).not.toContain('evil');
    },
  );

  test('no header that nginx drops by name reaches a container either, in any spelling', async () => {
    const names = droppedHeaders(kind).flatMap((name) => [name, name.replaceAll('-', '_')]);
    const headers = Object.fromEntries(names.map((name) => [name, 'evil']));
    expect(JSON.stringify(await forwarded(kind, headers))).not.toContain('evil');
  });

  test('the headers of the preview mode reach a container', async () => {
    const headers = {
      'x-gtm-server-preview': 'ZW52',
      'x-gtm-auth': 'a',
      'x-gtm-preview': 'env-1',
      'x-gtm-debug': 'x',
    };
    expect(await forwarded(kind, headers)).toMatchObject(headers);
  });
});

describe('the visitor’s place', () => {
  const place = {
    'x-forwarded-country': 'US',
    'x-forwarded-region': 'CA',
    'x-gclb-country': 'US',
    'x-gclb-region': 'USCA',
    'x-geo-country': 'US',
    'x-geo-region': 'CA',
  };
  test.each(['origin', 'preview'] as const)('reaches the %s from the edge only', async (kind) => {
    expect(await forwarded(kind, { ...place, 'x-tagyard-hop-secret': SECRET })).toMatchObject(place);
    expect(JSON.stringify(await forwarded(kind, place))).not.toMatch(/US|CA\b/);
  });

  test('is unknown at the edge, as this proxy has no database', async () => {
    expect(JSON.stringify(await forwarded('custom', place))).not.toMatch(/US|CA\b/);
  });
});

describe('the hop secret', () => {
  const said = { 'x-forwarded-for': '198.51.100.7', 'x-forwarded-country': 'AT' };
  test.each(['x-tagyard-hop-secret', 'x-tagyard-hop'])(
    'is accepted in %s and isn’t forwarded',
    async (name) => {
      const headers = await forwarded('origin', { ...said, [name]: SECRET });
      expect(headers).toMatchObject(said);
      expect(JSON.stringify(headers)).not.toContain(SECRET);
    },
  );

  test('is accepted while another one replaces it, and then not sent on', async () => {
    const headers = await forwarded('origin', { ...said, 'x-tagyard-hop-secret': PREVIOUS });
    expect(headers).toMatchObject(said);
    expect(JSON.stringify(headers)).not.toContain(PREVIOUS);
    const toEdge = await forwarded('custom', { 'x-tagyard-hop-secret': PREVIOUS });
    expect(toEdge).toMatchObject({ 'x-tagyard-hop-secret': SECRET });
  });

  test('is sent to the edge under its new name only', async () => {
    const headers = await forwarded('custom', { 'x-tagyard-hop': 'guess' });
    expect(headers).toMatchObject({ 'x-tagyard-hop-secret': SECRET });
    expect(headers).not.toHaveProperty('x-tagyard-hop');
  });
});
