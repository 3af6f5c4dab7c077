import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { buildDaemon } from '../../../gitops/http/app.ts';
import type { DaemonDeps } from '../../../gitops/http/deps.ts';
import { PROVISIONER_ERRORS } from '../../../gitops/http/errors.ts';
import { REFUSED_REQUESTS, sendBytes } from '../../support/refused-requests.ts';

describe('a request that never gets to a route', () => {
  let app: FastifyInstance = fastify();
  let url: string;
  beforeEach(async () => {
    // No route is called, so none of the daemon's parts is needed.
    app = buildDaemon({ secrets: ['right'] } as unknown as DaemonDeps);
    url = await app.listen({ host: '127.0.0.1', port: 0 });
  });
  afterEach(() => app.close());

  test.each(REFUSED_REQUESTS)('is answered by a problem: %s', async (_what, bytes, status, name) => {
    const code = name === 'malformed' ? 'malformed_request' : name;
    const answer = await sendBytes(url, bytes);
    expect([answer.status, answer.headers['content-type']]).toEqual([
      status,
      'application/problem+json; charset=utf-8',
    ]);
    expect(answer.headers).toMatchObject({
      'cache-control': 'no-store',
      connection: 'close',
      'content-length': String(Buffer.byteLength(answer.body)),
    });
    expect(JSON.parse(answer.body)).toMatchObject({
      type: `urn:tagyard:problem:${code}`,
      title: PROVISIONER_ERRORS[code][1],
      status,
      code,
      requestId: answer.headers['x-request-id'],
    });
  });

  test('is answered by 408 if its body doesn’t end within a minute', async () => {
    const { server } = app;
    expect(server.requestTimeout).toBe(60_000);
    Object.assign(server, { headersTimeout: 200, requestTimeout: 200 });
    const answer = await sendBytes(
      url,
      'POST /provision HTTP/1.1\r\nhost: a\r\nx-secret: right\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{',
    );
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([408, 'request_timeout']);
  });

  test('learns nothing of the daemon’s paths without the secret', async () => {
    const answer = await sendBytes(url, 'GET /sites HTTP/1.1\r\nconnection: close\r\n\r\n');
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([401, 'wrong_secret']);
  });
});
