import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { HOP_SECRET, type Stage, startStage } from '../support/edge/stage.ts';

const HOST = 'www.edge.test';
let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
beforeEach(async () => {
  stage.upstream.received.length = 0;
  stage.upstream.take = undefined;
  stage.upstream.reply = () => ({});
  await stage.seen();
});
afterAll(() => stage.close());

describe('a foreign host that a wildcard route catches (docs/facts.md, Cloudflare Workers)', () => {
  test.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'gets a %s at its own server with path, query, headers and body untouched',
    async (method) => {
      const body = ['POST', 'PUT', 'PATCH'].includes(method) ? { body: 'a=1&b=\u00e9' } : {};
      const headers = {
        cookie: '_fpid=theirs; a=b',
        'x-forwarded-for': '203.0.113.9',
        'x-forwarded-host': 'elsewhere.example',
        'x-gtm-api-key': 'theirs',
        'content-type': 'text/plain;charset=x',
        origin: 'https://stranger.example',
      };
      // A path that is the edge's own on a site's host.
      await stage.send(HOST, '/boot/..%2f?q=%20a&q', { method, headers, ...body });
      const [received] = stage.upstream.received;
      expect(received).toMatchObject({
        method,
        url: `http://${HOST}/boot/..%2f?q=%20a&q`,
        headers,
        body: body.body ?? '',
      });
      expect(Object.keys(received?.headers ?? {}).filter((name) => name.startsWith('x-tagyard'))).toEqual([]);
    },
  );

  test.each([
    ['a redirect', 302, { location: 'https://elsewhere.example/next' }],
    ['a permanent redirect to the same host', 308, { location: `http://${HOST}/again` }],
    ['a client error', 404, { 'content-type': 'text/plain' }],
    ['a server error', 503, { 'retry-after': '7' }],
    ['the status below Cloudflare’s own', 519, {}],
    ['the status above Cloudflare’s own', 531, {}],
    ['no content', 204, {}],
    ['not modified', 304, { etag: '"1"' }],
  ])('gets %s back as its server sent it', async (_what, status, headers) => {
    const body = status === 204 || status === 304 ? '' : 'their page';
    const cookies = ['_fpid=theirs; Path=/; Domain=edge.test', 'b=2'];
    stage.upstream.reply = () => ({ status, headers: { ...headers, 'set-cookie': cookies }, body });
    const answer = await stage.send(HOST, '/');
    expect(answer).toMatchObject({ status, text: body, headers: { ...headers, 'set-cookie': cookies } });
    expect(answer.headers['x-request-id']).toBeUndefined();
    expect(answer.headers['x-tagyard-request-id']).toBeUndefined();
    expect(answer.headers.vary).toBeUndefined();
    expect(stage.upstream.received).toHaveLength(1);
  });

  test('gets a large answer back with its whole text', async () => {
    stage.upstream.reply = () => ({ headers: { 'content-type': 'text/html' }, body: 'x'.repeat(200_000) });
    expect((await stage.send(HOST, '/large')).text).toHaveLength(200_000);
  });

  test('is in no record of requests', async () => {
    await stage.send(HOST, '/private?secret=1');
    const { records, events } = await stage.seen();
    expect([...records, ...events]).toEqual([]);
  });

  test('is served while the stores are down, once the edge knows that it is foreign', async () => {
    const host = 'api.edge.test';
    stage.upstream.reply = () => ({ body: 'theirs' });
    expect((await stage.send(host, '/')).text).toBe('theirs');
    await stage.fault('ROUTES', 'fail');
    try {
      await stage.forward(5_000);
      expect((await stage.send(host, '/')).text).toBe('theirs');
      expect((await stage.send('unseen.edge.test', '/')).json.code).toBe('store_unavailable');
    } finally {
      await stage.fault('ROUTES', null);
    }
  });

  test.each([520, 521, 522, 523, 524, 525, 526, 530])(
    'whose server Cloudflare can’t reach gets Cloudflare’s status %i back (docs/facts.md, Cloudflare Workers)',
    async (status) => {
      stage.upstream.reply = () => ({ status, headers: { 'content-type': 'text/html' }, body: 'error code' });
      expect(await stage.send(HOST, '/')).toMatchObject({ status, text: 'error code' });
      expect(await stage.send(HOST, '/', { method: 'POST', body: 'a=1' })).toMatchObject({ status });
    },
  );

  test('whose server does not answer gets the error unknown_host', async () => {
    stage.upstream.take = (_incoming, outgoing) => outgoing.destroy();
    expect((await stage.send(HOST, '/')).json.code).toBe('unknown_host');
  });

  test.each(['x-tagyard-hop-secret', 'x-tagyard-hop'])('never gets the hop secret in %s', async (header) => {
    for (const value of [HOP_SECRET, 'the secret before its rotation']) {
      const answer = await stage.send(HOST, '/', { headers: { [header]: value } });
      expect(answer.json.code).toBe('unknown_host');
    }
    expect(stage.upstream.received).toEqual([]);
  });

  test('is never asked for an address of the worker’s cache', async () => {
    expect((await stage.send(HOST, '/.tagyard/ROUTES/x')).json.code).toBe('unknown_host');
    expect(stage.upstream.received).toEqual([]);
  });
});
