import { readFileSync } from 'node:fs';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Egress, startEgress } from '../../../sites/local/egress.ts';

const HOST = 'shop-origin.tagyard.localhost';
const pem = (name: string) => readFileSync(new URL(`../../support/tls/${name}.pem`, import.meta.url), 'utf8');
/** Self-signed, for `HOST` only. */
const certificate = { cert: pem('localhost.cert'), key: pem('localhost.key'), ca: pem('localhost.cert') };

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

describe('the egress proxy', () => {
  const open: { close(): Promise<void> }[] = [];
  let handler: Handler;
  let origin: number;
  let egress: Egress;

  beforeEach(async () => {
    handler = (_request, response) => response.end('hello');
    const server = https.createServer(certificate, (...args) => handler(...args));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = (server.address() as AddressInfo).port; // a TCP server has one
    open.push({
      async close() {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    });
    egress = await startEgress({
      resolve: (host) => (host.includes('tagyard') ? '127.0.0.1' : null),
      ca: [certificate.ca],
    });
    open.push(egress);
  });
  afterEach(async () => {
    for (const each of open.splice(0).reverse()) await each.close();
  });

  /** A request with its target in absolute form, as a client of a proxy sends it. */
  async function send(target: string, options: http.RequestOptions = {}, body?: string) {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const { host, port } = egress;
    const request = http
      .request({ host, port, path: target, agent: false, ...options }, resolve)
      .once('error', reject);
    request.end(body);
    const response = await promise;
    const chunks: Buffer[] = await response.toArray();
    return {
      status: response.statusCode,
      rawHeaders: response.rawHeaders,
      headers: response.headers,
      text: Buffer.concat(chunks).toString(),
    };
  }
  const url = (path: string) => `https://${HOST}:${origin}${path}`;

  test('connects by TLS with the host’s name and forwards path, query and headers unchanged', async () => {
    let seen: IncomingMessage | undefined;
    handler = (request, response) => {
      seen = request;
      response.writeHead(201, ['Set-Cookie', 'a=1', 'set-cookie', 'b=2', 'X-Odd-CASE', 'kept']).end('done');
    };
    const answer = await send(url('/g/collect/../x?b=%7E&a=1&b=2'), {
      headers: [
        'Host',
        HOST,
        'X-First',
        '1',
        'x-FIRST',
        '2',
        'Proxy-Connection',
        'keep-alive',
        'Connection',
        'x-hop',
        'X-Hop',
        '1',
      ],
    });
    expect(seen?.url).toBe('/g/collect/../x?b=%7E&a=1&b=2');
    expect(seen?.rawHeaders.slice(0, 6)).toEqual([
      'Host',
      `${HOST}:${origin}`,
      'X-First',
      '1',
      'x-FIRST',
      '2',
    ]);
    expect(seen?.headers).not.toHaveProperty('proxy-connection');
    expect(seen?.headers).not.toHaveProperty('x-hop');
    expect(answer).toMatchObject({ status: 201, text: 'done' });
    expect(answer.rawHeaders.slice(0, 6)).toEqual([
      'Set-Cookie',
      'a=1',
      'set-cookie',
      'b=2',
      'X-Odd-CASE',
      'kept',
    ]);
  });

  test('forwards bodies both ways: with a length, in chunks, or empty', async () => {
    handler = (request, response) => {
      request.toArray().then((chunks: Buffer[]) => {
        const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
        response.end(JSON.stringify({ length, encoding, text: Buffer.concat(chunks).toString() }));
      });
    };
    const post = async (headers: Record<string, string>, body?: string) =>
      JSON.parse((await send(url('/'), { method: 'POST', headers: { host: HOST, ...headers } }, body)).text);
    expect(await post({ 'content-length': '4' }, 'body')).toEqual({ length: '4', text: 'body' });
    expect(await post({ 'transfer-encoding': 'chunked' }, 'body')).toEqual({
      encoding: 'chunked',
      text: 'body',
    });
    expect(await post({ 'content-length': '0' })).toEqual({ length: '0', text: '' });
  });

  test('streams: the first part arrives before the last one is written', async () => {
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
    handler = (_request, response) => {
      response.write('first ');
      void arrived.then(() => response.end('second'));
    };
    const { promise, resolve } = Promise.withResolvers<IncomingMessage>();
    http.get({ host: egress.host, port: egress.port, path: url('/'), agent: false }, resolve);
    const parts: string[] = [];
    for await (const chunk of await promise) {
      parts.push(String(chunk));
      arrive();
    }
    expect(parts).toEqual(['first ', 'second']);
  });

  describe('answers as Cloudflare does (docs/facts.md, Cloudflare Workers)', () => {
    test.each([
      ['a host without a listener', `https://${HOST}:1/`, 521],
      ['a host that doesn’t speak TLS', 'https://plain.tagyard.localhost:{plain}/', 525],
      ['a host whose certificate names another', 'https://other.tagyard.localhost:{port}/', 526],
      ['a host without an address', 'http://no-such-host.invalid/', 530],
    ])('%s: $2', async (_name, target, status) => {
      const plain = http.createServer((_request, response) => response.end());
      await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
      open.push({ close: () => new Promise((resolve) => plain.close(() => resolve())) });
      const { port } = plain.address() as AddressInfo; // a TCP server has one
      const to = target.replace('{port}', String(origin)).replace('{plain}', String(port));
      expect((await send(to)).status).toBe(status);
    });

    test('an unknown CA: 526', async () => {
      const strict = await startEgress({ resolve: () => '127.0.0.1', ca: [] });
      open.push(strict);
      expect((await send(url('/'), { host: strict.host, port: strict.port })).status).toBe(526);
    });

    test('a name without an origin, for a request that a worker passes on: 522 after the time limit', async () => {
      let asked = 0;
      handler = (_request, response) => {
        asked += 1;
        response.end();
      };
      const originless = await startEgress({
        resolve: () => '100::',
        ca: [certificate.ca],
        connectTimeoutMs: 50,
        edgePort: () => origin,
      });
      open.push(originless);
      const { host, port } = originless;
      const headers = { host: HOST, 'cf-ew-via': '1' };
      expect((await send(url('/'), { host, port, headers })).status).toBe(522);
      expect(asked).toBe(0);
      // A visitor's request without that header reaches the edge, which is this server.
      expect((await send(url('/'), { host, port })).status).toBe(200);
      expect(asked).toBe(1);
    });

    test.each([`https://${HOST}`, `http://${HOST}`, 'http://127.0.0.1'])(
      'a request that a worker passes on to another port of %s than the scheme’s and the edge’s: 521',
      async (to) => {
        let asked = 0;
        handler = (_request, response) => {
          asked += 1;
          response.end();
        };
        const headers = { host: HOST, 'cf-ew-via': '1' };
        expect((await send(`${to}:${origin}/metrics`, { headers })).status).toBe(521);
        expect(asked).toBe(0);
      },
    );

    test('a request that a worker passes on to the edge’s own port: the answer from there', async () => {
      const own = await startEgress({
        resolve: () => '127.0.0.1',
        ca: [certificate.ca],
        edgePort: () => origin,
      });
      open.push(own);
      const headers = { host: HOST, 'cf-ew-via': '1' };
      expect((await send(url('/'), { host: own.host, port: own.port, headers })).status).toBe(200);
    });
  });

  test('repeats a request without a body if the idle connection was closed', async () => {
    const used = new WeakSet<object>();
    let connections = 0;
    handler = (request, response) => {
      if (used.has(request.socket)) {
        request.socket.destroy();
        return;
      }
      connections += 1;
      used.add(request.socket);
      response.end('hello');
    };
    expect((await send(url('/'))).text).toBe('hello');
    expect((await send(url('/'))).text).toBe('hello');
    expect(connections).toBe(2);
    const post = { method: 'POST', headers: { host: HOST, 'content-length': '4' } };
    expect((await send(url('/'), post, 'body')).status).toBe(520);
  });

  test('forwards an incomplete answer as incomplete', async () => {
    handler = (_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half');
      setImmediate(() => response.destroy());
    };
    await expect(send(url('/'))).rejects.toThrow();
  });

  test('takes the host from the target, because workerd sends no Host header', async () => {
    let host: string | undefined;
    handler = (request, response) => {
      host = request.headers.host;
      response.end();
    };
    expect((await send(url('/'), { setHost: false })).status).toBe(200);
    expect(host).toBe(`${HOST}:${origin}`);
  });

  test.each(['/relative', 'ftp://example.net/', 'https://user:secret@example.net/'])(
    'refuses the target %s',
    async (target) => {
      expect((await send(target)).status).toBe(400);
    },
  );
});
