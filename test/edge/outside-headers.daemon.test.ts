import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Received } from '../../edge/kit/upstream.ts';
import { type Stage, startStage } from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage?.close());
afterEach(() => {
  stage.upstream.received.length = 0;
  stage.upstream.reply = () => ({});
});

/**
 * A container whose template calls a store. Like real templates, it builds the address and the key of the call from
 * request headers that only the container's host should set.
 */
async function callingTemplate(request: Received) {
  const text = (name: string, otherwise: string) => String(request.headers[name] ?? otherwise);
  const url = `http://${text('x-gtm-default-domain', '127.0.0.1:1')}/${text('x-gtm-identifier', 'own')}/values`;
  const answer = await fetch(url, { headers: { 'x-api-key': text('x-gtm-api-key', 'own') } }).catch(
    () => null,
  );
  return { body: answer === null ? 'the container asked its own store' : await answer.text() };
}

describe('headers that only the host of a container should set', () => {
  test.each([
    ['a hit', 'GET', '/g/collect?v=2'],
    ['a hit of a server', 'POST', '/mp/collect'],
    ['a path of the manifest', 'POST', '/data'],
    ['the preview', 'GET', '/gtm/debug?id=GTM-1'],
    ['a service page', 'GET', '/_/service_worker/1/sw.js'],
  ])('don’t choose the server that a template calls: %s', async (_name, method, path) => {
    const calls: string[] = [];
    const stranger = createServer(({ url = '' }, response) => {
      calls.push(url);
      response.end('a stranger’s answer');
    });
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = stranger.address() as AddressInfo; // a TCP server's address is never a string
      const site = await stage.site({ proxyPaths: ['/data'] });
      stage.upstream.reply = callingTemplate;
      const answer = await stage.send(site.host, path, {
        method,
        headers: {
          'x-gtm-identifier': 'evil',
          'X-GTM-Default-Domain': `127.0.0.1:${port}`,
          'x-gtm-api-key': 'evil',
        },
      });
      expect(calls).toEqual([]);
      expect(answer).toMatchObject({ status: 200, text: 'the container asked its own store' });
    } finally {
      stranger.close();
    }
  });

  test('are not in the report of a detection', async () => {
    const site = await stage.site();
    const sent = await stage.send(site.host, '/mark-session-detection', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-gtm-identifier': 'evil' },
      body: JSON.stringify({
        loader: site.loader,
        session: { id: 'a'.repeat(32) },
        signals: { bait_hidden: true },
      }),
    });
    expect(sent).toMatchObject({ status: 202, json: { forwarded: true } });
    await expect.poll(() => stage.upstream.received).toHaveLength(1);
    expect(stage.upstream.received[0]?.headers).not.toHaveProperty('x-gtm-identifier');
  });

  test.each([
    'x-gtm-identifier',
    'x-gtm-',
    'X-Gtm-Anything-New',
    'x_gtm_identifier',
    'x-gtm_api-key',
    'x-gtm-debug2',
  ])('%s is dropped', async (name) => {
    const site = await stage.site();
    await stage.send(site.host, '/g/collect', { headers: { [name]: 'claimed' } });
    expect(stage.upstream.received).toHaveLength(1);
    expect(JSON.stringify(stage.upstream.received[0]?.rawHeaders)).not.toContain('claimed');
  });

  test.each(['x-gtm-server-preview', 'x-gtm-auth', 'x-gtm-preview', 'x-gtm-debug'])(
    '%s is not one of them, and passes',
    async (name) => {
      const site = await stage.site();
      await stage.send(site.host, '/gtm/get_memo?id=GTM-1', { headers: { [name]: 'of the preview' } });
      expect(stage.upstream.received[0]?.headers[name]).toBe('of the preview');
    },
  );
});
