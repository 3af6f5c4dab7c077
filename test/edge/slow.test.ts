import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Stage, startStage } from '../support/edge/stage.ts';
import { vendorScript } from '../support/edge/upstream.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage('impatient.ts');
});
afterAll(() => stage?.close());
afterEach(() => {
  stage.upstream.take = undefined;
  stage.upstream.reply = () => ({});
});

describe('a tag server', () => {
  test('that accepts a request but never answers causes a 502 after the time limit', async () => {
    const site = await stage.site();
    stage.upstream.take = () => undefined;
    expect(await stage.send(site.host, '/g/collect')).toMatchObject({
      status: 502,
      json: { code: 'upstream_failed' },
    });
  });

  test('that never answers doesn’t keep a background request open', async () => {
    const site = await stage.site();
    stage.upstream.take = () => undefined;
    const sent = await stage.send(site.host, '/mark-session-detection', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ loader: site.loader, session: { id: 'a'.repeat(32) }, signals: {} }),
    });
    expect(sent).toMatchObject({ status: 202 });
    await expect
      .poll(async () => (await stage.seen()).events)
      .toContainEqual(expect.objectContaining({ event: 'background_failed' }));
  });
});

test.each([
  ['says so in content-length', { 'content-length': String(5_000_000) }],
  ['doesn’t state its length', {}],
])('a vendor’s script that is too large is not buffered if it %s', async (_name, length) => {
  const site = await stage.site();
  const { headers } = vendorScript();
  stage.upstream.take = (_incoming, outgoing) => {
    outgoing.on('error', () => undefined);
    outgoing.writeHead(200, { ...headers, ...length });
    // The answer has no end: only a limit ends it.
    const piece = Buffer.alloc(65_536, ' ');
    const more = () => {
      while (!outgoing.destroyed && outgoing.write(piece));
    };
    outgoing.on('drain', more);
    more();
  };
  const answer = await stage.send(site.host, `/c/${site.domains[0]?.token}.js`);
  expect(answer).toMatchObject({ status: 502, json: { code: 'upstream_failed' } });
});

describe('an error', () => {
  test.each([
    ['an unknown path', 'POST /unknown', 'text/plain', 1_000_000, '404'],
    ['a body whose content-length is too large', 'POST /boot', 'application/json', 1_000_000, '413'],
    ['a site’s own path with the wrong method', 'PUT /boot', 'text/plain', 1000, '405'],
  ])('does not wait for the end of the client’s body: %s', async (_name, line, type, length, status) => {
    const site = await stage.site();
    const socket = connect(stage.port, '127.0.0.1');
    socket.write(
      `${line} HTTP/1.1\r\nhost: ${site.host}\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\nbegun`,
    );
    // The request's body never ends, but the whole answer arrives.
    let received = '';
    while (!/\r\n\r\n\{.*\}/s.test(received)) received += String((await once(socket, 'data'))[0]);
    expect(received).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(received).toContain('application/problem+json');
    socket.destroy();
  });

  test('because of a chunked body that becomes too large is answered before the body ends', async () => {
    const site = await stage.site();
    const socket = connect(stage.port, '127.0.0.1');
    const piece = 'x'.repeat(70_000);
    socket.write(
      `POST /boot HTTP/1.1\r\nhost: ${site.host}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n` +
        `${piece.length.toString(16)}\r\n${piece}\r\n`,
    );
    let received = '';
    while (!/\r\n\r\n\{.*\}/s.test(received)) received += String((await once(socket, 'data'))[0]);
    expect(received).toMatch(/^HTTP\/1.1 413 /);
    socket.destroy();
  });
});
