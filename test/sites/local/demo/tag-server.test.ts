import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import { tagServingPath } from '../../../../sites/local/demo/tag-server/scripts.ts';
import { readSettings } from '../../../../sites/local/demo/tag-server/settings.ts';
import { containerConfig, startTagServer } from '../../../support/tag-server.ts';

const env = (extra: Record<string, string> = {}) => ({ CONTAINER_CONFIG: containerConfig(), ...extra });
const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('the stand-in’s settings', () => {
  test.each([
    [{}, 'Missing container config'],
    [{ CONTAINER_CONFIG: '%%%' }, 'Failed to decode the container config'],
    [{ CONTAINER_CONFIG: containerConfig().replace(/=+$/, '') }, 'Failed to decode the container config'],
    [{ CONTAINER_CONFIG: base64('id=GTM-A&env=1') }, 'Missing or invalid container config parameter: auth'],
    [{ CONTAINER_CONFIG: base64('id=GTM-A&env=&auth=x') }, 'parameter: env'],
    [{ CONTAINER_CONFIG: base64('id=GTM-A&id=GTM-B&env=1&auth=x') }, 'parameter: id'],
    [env({ PREVIEW_SERVER_URL: 'http://preview.example' }), 'Invalid preview server URL'],
    [env({ PREVIEW_SERVER_URL: 'https://' }), 'Invalid preview server URL'],
    [env({ PORT: '65536' }), 'Invalid PORT'],
    [env({ PORT: '-1' }), 'Invalid PORT'],
    [env({ PORT: '80a' }), 'Invalid PORT'],
  ])('%j is refused: %s', (settings, message) => {
    expect(() => readSettings([], settings)).toThrow(message);
  });

  test('have the image’s defaults', () => {
    expect(readSettings([], env())).toEqual({
      config: { id: 'GTM-SERVER1', env: '1', auth: 's3cret-auth-t0ken' },
      role: 'processing',
      previewServerUrl: null,
      port: 8080,
      host: '',
      longPollSeconds: 20,
      messageExpirySeconds: 600,
      refreshSeconds: 60,
      policyScriptUrl: null,
      upstream: null,
    });
  });

  test('come from flags before the environment, and accept the old name of the preview role', () => {
    const settings = readSettings(['--port=9090'], env({ PORT: '8081', RUN_AS_DEBUG_SERVER: 'TRUE' }));
    expect(settings).toMatchObject({ port: 9090, role: 'preview' });
    expect(readSettings([], env({ PREVIEW_SERVER_URL: 'HTTPS://p' })).previewServerUrl).toBe('HTTPS://p');
  });
});

describe('health (docs/facts.md, Health)', () => {
  test('fails after 14 days, while other requests are served', async () => {
    await using server = await startTagServer();
    const addDays = (days: number) =>
      request(`${server.url}/tagyard-demo/age?days=${days}`, { method: 'POST' });
    const statusOf = async (path: string) => (await request(`${server.url}${path}`)).statusCode;
    await addDays(12);
    expect(await statusOf('/healthz')).toBe(200);
    await addDays(2);
    expect(await statusOf('/healthz')).toBe(503);
    expect(await statusOf('/g/collect?v=2')).toBe(200);
  });

  test('after 14 days, a server is still healthy within a limit that the request’s header sets', async () => {
    await using server = await startTagServer();
    await request(`${server.url}/tagyard-demo/age?days=14`, { method: 'POST' });
    const statusOf = async (value: string) =>
      (await request(`${server.url}/healthz`, { headers: { 'x-sgtm-healthz': value } })).statusCode;
    expect(await statusOf('container_refresh_millis=600000')).toBe(200);
    expect(await statusOf('container_refresh_millis=600000, server_start_millis=0')).toBe(200);
    expect(await statusOf('server_start_millis=600000')).toBe(500);
    expect(await statusOf('unknown_millis=0')).toBe(503);
  });
});

describe('paths that the tag server’s clients claim', () => {
  const events = async (url: string) => {
    const { body } = await request(`${url}/tagyard-demo/events`);
    return (await body.json()) as { dropped: number; events: Record<string, unknown>[] }; // RecordedEvents
  };

  test.each(['/g/collect', '/j/collect', '/mp/collect'])('%s is recorded as received', async (path) => {
    await using server = await startTagServer();
    await request(`${server.url}${path}?v=2&tid=G-1&b=%20&a=1`, {
      method: 'POST',
      headers: [
        'X-Forwarded-For',
        '203.0.113.7, 10.0.0.1',
        'Content-Type',
        'text/plain',
        'X-Twice',
        'a',
        'X-Twice',
        'b',
      ],
      body: 'en=page_view\nen=scroll',
    });
    const { events: recorded, dropped } = await events(server.url);
    expect(dropped).toBe(0);
    expect(recorded).toHaveLength(1);
    expect(recorded[0]).toMatchObject({
      method: 'POST',
      path,
      query: 'v=2&tid=G-1&b=%20&a=1',
      body: 'en=page_view\nen=scroll',
      address: '203.0.113.7',
    });
    const headers = recorded[0]?.headers as [string, string][]; // Pairs of name and value.
    expect(headers.filter(([name]) => name === 'X-Twice')).toEqual([
      ['X-Twice', 'a'],
      ['X-Twice', 'b'],
    ]);
  });

  test('a hit sets FPID and FPLC, each in its own header, and keeps an existing id', async () => {
    await using server = await startTagServer();
    const first = await request(`${server.url}/g/collect?v=2`);
    const cookies = [first.headers['set-cookie']].flat();
    expect(cookies).toHaveLength(2);
    expect(cookies[0]).toMatch(
      /^FPID=FPID2\.2\.[\w-]+; Max-Age=63072000; Path=\/; Secure; HttpOnly; SameSite=Lax$/,
    );
    expect(cookies[1]).toMatch(/^FPLC=[\w-]+; Max-Age=72000; Path=\/; Secure; SameSite=Lax$/);
    const again = await request(`${server.url}/g/collect`, { headers: { cookie: 'a=b; FPID=FPID2.2.mine' } });
    expect([again.headers['set-cookie']].flat()[0]).toContain('FPID=FPID2.2.mine;');
  });

  test.each([
    [{ host: 'metrics.acme.example' }, 'acme.example'],
    [{ host: 'acme.example:8443' }, 'acme.example'],
    [{ host: 'a.b.shop.co.uk' }, 'shop.co.uk'],
    [{ host: 'my.shop.github.io' }, 'shop.github.io'],
    [{ host: 'origin.example.net', 'x-forwarded-host': 'metrics.acme.example' }, 'acme.example'],
    [{ host: 'origin.example.net', forwarded: 'for=1.2.3.4;host=a.acme.example' }, 'acme.example'],
    [{ host: 'github.io' }, null],
    [{ host: 'co.uk' }, null],
    [{ host: 'localhost' }, null],
    [{ host: '127.0.0.1:8080' }, null],
    [{ host: '[::1]:8080' }, null],
  ])('cookies of a visit to %j have the domain %s (docs/facts.md, Paths)', async (headers, domain) => {
    await using server = await startTagServer();
    const answer = await request(`${server.url}/g/collect?v=2`, { headers });
    const cookies = [answer.headers['set-cookie']].flat();
    const domains = cookies.map((cookie) => /; Domain=([^;]+)/.exec(cookie ?? '')?.[1] ?? null);
    expect(domains).toEqual([domain, domain]);
  });

  test.each(['/webhooks/orders', '/apps/a/b', '/crm/contact?id=1'])(
    '%s, which a client claims by a prefix, is recorded (docs/facts.md, Paths)',
    async (path) => {
      await using server = await startTagServer();
      const answer = await request(`${server.url}${path}`, { method: 'POST', body: '{}' });
      expect(answer.statusCode).toBe(200);
      expect((await events(server.url)).events).toMatchObject([{ path: path.split('?')[0], body: '{}' }]);
    },
  );

  test.each(['', '/gtag/js', '/deeper/gtm.js'])(
    'the container’s serving path, with %j after it, serves scripts (docs/facts.md, Paths)',
    async (rest) => {
      await using server = await startTagServer();
      const at = tagServingPath('GTM-SERVER1');
      const { statusCode, body } = await request(`${server.url}${at}${rest}?id=GTM-ABC1234`);
      expect([statusCode, (await body.text()).includes('GTM-ABC1234')]).toEqual([200, true]);
      const other = tagServingPath('GTM-OTHER');
      expect((await request(`${server.url}${other}${rest}?id=GTM-ABC1234`)).statusCode).toBe(400);
      expect((await request(`${server.url}${at}x${rest}?id=GTM-ABC1234`)).statusCode).toBe(400);
    },
  );

  test('detection signals are recorded too', async () => {
    await using server = await startTagServer();
    const body = JSON.stringify({ site: 'shop', signals: { adblock: true } });
    expect((await request(`${server.url}/tagyard/detection`, { method: 'POST', body })).statusCode).toBe(204);
    expect((await events(server.url)).events[0]).toMatchObject({ path: '/tagyard/detection', body });
  });

  test('only the last 500 requests are kept, and the others are counted', async () => {
    await using server = await startTagServer();
    for (let number = 0; number < 502; number += 1) await request(`${server.url}/g/collect?n=${number}`);
    const { events: recorded, dropped } = await events(server.url);
    expect([recorded.length, dropped, recorded[0]?.query]).toEqual([500, 2, 'n=2']);
  });

  test('a body over 8 MiB is refused', async () => {
    await using server = await startTagServer();
    const { statusCode } = await request(`${server.url}/g/collect`, {
      method: 'POST',
      body: 'x'.repeat(8 * 1024 * 1024 + 1),
    });
    expect(statusCode).toBe(413);
    expect((await events(server.url)).events).toEqual([]);
  });

  test.each([
    ['/gtm.js?id=GTM-ABC1234', 200, 'application/javascript; charset=utf-8'],
    ['/gtag/js?id=G-ABC1234', 200, 'application/javascript; charset=utf-8'],
    ['/gtag/destination?id=G-ABC1234', 200, 'application/javascript; charset=utf-8'],
    ['/ns.html?id=GTM-ABC1234', 200, 'text/html; charset=utf-8'],
    ['/gtm.js', 400, 'text/plain'],
    ['/unclaimed', 400, 'text/plain'],
    ['/gtm/debug', 400, 'text/plain'],
  ])('%s answers %i', async (path, status, type) => {
    await using server = await startTagServer();
    const { statusCode, headers } = await request(`${server.url}${path}`);
    expect([statusCode, headers['content-type']]).toEqual([status, type]);
  });

  test.each(['/g/collect', '/webhooks/x'])(
    'a preflight is answered on %s, which a client claims',
    async (path) => {
      await using server = await startTagServer();
      const headers = { origin: 'https://shop.example' };
      const answer = await request(`${server.url}${path}`, { method: 'OPTIONS', headers });
      expect(answer.headers).toMatchObject({
        'access-control-allow-origin': 'https://shop.example',
        'access-control-allow-credentials': 'true',
      });
    },
  );
});

describe('a draft of the container (docs/facts.md, Preview server)', () => {
  test.each([
    ['gtm_preview=GTM-SERVER1=env-3', 401],
    ['gtm_preview=GTM-OTHER=env-1:GTM-SERVER1=env-3; a=b', 401],
    ['gtm_preview=GTM-SERVER1=env-3; gtm_auth=GTM-SERVER1=x', 200],
    ['gtm_preview=GTM-SERVER1=workspace-7; gtm_auth=GTM-SERVER1=x', 200],
    ['gtm_preview=GTM-SERVER1=env-3; gtm_auth=GTM-SERVER1=bad', 403],
    ['gtm_preview=GTM-OTHER=env-3', 200],
  ])('is shown only with an auth that Google takes: %s → %i', async (cookie, status) => {
    await using server = await startTagServer();
    expect((await request(`${server.url}/g/collect`, { headers: { cookie } })).statusCode).toBe(status);
  });
});

describe('the preview role', () => {
  test('drops messages that are not fetched in time', async () => {
    await using server = await startTagServer({
      role: 'preview',
      longPollSeconds: 0,
      messageExpirySeconds: 0,
    });
    const posted = await request(`${server.url}/gtm/post_memo?auth_code=s3cret-auth-t0ken`, {
      method: 'POST',
      body: JSON.stringify([{ sessionId: 'abc123', memos: ['old'] }]),
    });
    expect(posted.statusCode).toBe(200);
    const headers = { cookie: 'gtm_debug=GTM-SERVER1=abc123' };
    expect((await request(`${server.url}/gtm/get_memo?id=GTM-SERVER1`, { headers })).statusCode).toBe(204);
  });

  test('hands out five posts at a time', async () => {
    await using server = await startTagServer({ role: 'preview', longPollSeconds: 0 });
    const posts = Array.from({ length: 7 }, (_, n) => ({ sessionId: 'abc123', memos: [n] }));
    await request(`${server.url}/gtm/post_memo?auth_code=s3cret-auth-t0ken`, {
      method: 'POST',
      body: JSON.stringify(posts),
    });
    const poll = async () => {
      const headers = { cookie: 'gtm_debug=GTM-SERVER1=abc123' };
      const { body } = await request(`${server.url}/gtm/get_memo?id=GTM-SERVER1`, { headers });
      return await body.text();
    };
    expect(await poll()).toBe(`)]}'\n${JSON.stringify({ 'GTM-SERVER1': [0, 1, 2, 3, 4] })}`);
    expect(await poll()).toBe(`)]}'\n${JSON.stringify({ 'GTM-SERVER1': [5, 6] })}`);
  });

  test('answers the user interface’s preflight without credentials', async () => {
    await using server = await startTagServer({ role: 'preview' });
    const headers = { origin: 'https://tagmanager.google.com' };
    const answer = await request(`${server.url}/gtm/debug`, { method: 'OPTIONS', headers });
    expect(answer.statusCode).toBe(204);
    expect(answer.headers['access-control-allow-credentials']).toBeUndefined();
  });
});
