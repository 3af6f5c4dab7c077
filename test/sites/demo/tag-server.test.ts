import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import { readSettings } from '../../../sites/demo/tag-server/settings.ts';
import { containerConfig, startTagServer } from '../../support/tag-server.ts';

const env = (extra: Record<string, string> = {}) => ({ CONTAINER_CONFIG: containerConfig(), ...extra });
const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('the stand-in’s settings', () => {
  test.each([
    [{}, 'Missing or invalid container config parameter: id'],
    [{ CONTAINER_CONFIG: '%%%' }, 'Missing or invalid container config parameter: id'],
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

  test('has the image’s defaults', () => {
    expect(readSettings([], env())).toEqual({
      config: { id: 'GTM-SERVER1', env: '1', auth: 's3cret-auth-t0ken' },
      role: 'processing',
      previewServerUrl: null,
      port: 8080,
      host: '',
      longPollSeconds: 20,
      messageExpirySeconds: 600,
    });
  });

  test('takes flags before the environment, and the old name of the preview role', () => {
    const settings = readSettings(['--port=9090'], env({ PORT: '8081', RUN_AS_DEBUG_SERVER: 'TRUE' }));
    expect(settings).toMatchObject({ port: 9090, role: 'preview' });
    expect(readSettings([], env({ PREVIEW_SERVER_URL: 'HTTPS://p' })).previewServerUrl).toBe('HTTPS://p');
  });
});

describe('health', () => {
  test.each(['processing', 'preview'] as const)(
    'depends on the end of the path in the %s role',
    async (role) => {
      await using server = await startTagServer({ role });
      for (const path of ['/healthz', '/healthy', '/any/prefix/healthy?x=1']) {
        const { statusCode, headers, body } = await request(`${server.url}${path}`);
        expect([statusCode, headers['content-type'], await body.text()]).toEqual([200, 'text/plain', 'ok']);
      }
      expect((await request(`${server.url}/healthz?servertype=other`)).statusCode).toBe(500);
    },
  );

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

  test('fails if the caller asks for a younger server', async () => {
    await using server = await startTagServer();
    const statusOf = async (value: string) =>
      (await request(`${server.url}/healthz`, { headers: { 'x-sgtm-healthz': value } })).statusCode;
    expect(await statusOf('server_start_millis=600000')).toBe(200);
    expect(await statusOf('server_start_millis=0')).toBe(500);
  });
});

describe('paths of clients', () => {
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

  test('a hit sets both cookies, each in its own header, and keeps an existing id', async () => {
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

  test('detection signals are recorded too', async () => {
    await using server = await startTagServer();
    const body = JSON.stringify({ site: 'shop', signals: { adblock: true } });
    expect((await request(`${server.url}/tagyard/detection`, { method: 'POST', body })).statusCode).toBe(204);
    expect((await events(server.url)).events[0]).toMatchObject({ path: '/tagyard/detection', body });
  });

  test('only the last 500 are kept, and the others are counted', async () => {
    await using server = await startTagServer();
    for (let number = 0; number < 502; number += 1) await request(`${server.url}/g/collect?n=${number}`);
    const { events: recorded, dropped } = await events(server.url);
    expect([recorded.length, dropped, recorded[0]?.query]).toEqual([500, 2, 'n=2']);
  });

  test('a body over 256 KiB is refused', async () => {
    await using server = await startTagServer();
    const { statusCode } = await request(`${server.url}/g/collect`, {
      method: 'POST',
      body: 'x'.repeat(300_000),
    });
    expect(statusCode).toBe(413);
    expect((await events(server.url)).events).toEqual([]);
  });

  test.each([
    ['/gtm.js?id=GTM-ABC1234', 200, 'application/javascript; charset=utf-8'],
    ['/gtag/js?id=G-ABC1234', 200, 'application/javascript; charset=utf-8'],
    ['/ns.html?id=GTM-ABC1234', 200, 'text/html; charset=utf-8'],
    ['/gtm.js', 400, 'text/plain'],
    ['/unclaimed', 400, 'text/plain'],
    ['/gtm/debug', 400, 'text/plain'],
  ])('%s answers %i', async (path, status, type) => {
    await using server = await startTagServer();
    const { statusCode, headers } = await request(`${server.url}${path}`);
    expect([statusCode, headers['content-type']]).toEqual([status, type]);
  });

  test('a preflight is answered only on clients’ paths and for the Tag Manager interface', async () => {
    await using server = await startTagServer();
    const ask = async (path: string, origin: string) =>
      await request(`${server.url}${path}`, { method: 'OPTIONS', headers: { origin } });
    expect((await ask('/g/collect', 'https://shop.example')).headers).toMatchObject({
      'access-control-allow-origin': 'https://shop.example',
      'access-control-allow-credentials': 'true',
    });
    expect((await ask('/anything', 'https://tagmanager.googleusercontent.com')).headers).toMatchObject({
      'access-control-allow-headers': 'x-gtm-auth, x-gtm-preview, x-gtm-debug',
      'access-control-allow-methods': 'GET',
      'access-control-max-age': '86400',
    });
    expect((await ask('/anything', 'https://shop.example')).statusCode).toBe(400);
  });
});

describe('a draft of the container', () => {
  test.each([
    ['gtm_preview=GTM-SERVER1=env-3', 401],
    ['gtm_preview=GTM-OTHER=env-1:GTM-SERVER1=env-3; a=b', 401],
    ['gtm_preview=GTM-SERVER1=env-3; gtm_auth=GTM-SERVER1=x', 200],
    ['gtm_preview=GTM-OTHER=env-3', 200],
  ])('is shown only with its auth: %s → %i', async (cookie, status) => {
    await using server = await startTagServer();
    expect((await request(`${server.url}/g/collect`, { headers: { cookie } })).statusCode).toBe(status);
  });
});

describe('the preview role', () => {
  const debug = '/gtm/debug?id=GTM-SERVER1&gtm_auth=s3cret-auth-t0ken&gtm_preview=env-1';

  test('opens its page with the three debug cookies', async () => {
    await using server = await startTagServer({ role: 'preview' });
    const { headers, body } = await request(`${server.url}${debug}`);
    expect(await body.text()).toContain('Tag Assistant');
    const attributes = 'Max-Age=300; Path=/; HttpOnly; SameSite=None; Secure';
    expect(headers['set-cookie']).toEqual([
      `gtm_auth=GTM-SERVER1=s3cret-auth-t0ken; ${attributes}`,
      `gtm_debug=GTM-SERVER1=x; ${attributes}`,
      `gtm_preview=GTM-SERVER1=env-1; ${attributes}`,
    ]);
  });

  test.each(['/gtm/debug', debug.replace('GTM-SERVER1', 'GTM-OTHER'), debug.replace('t0ken', 'guess')])(
    'shows a failed page for %s',
    async (path) => {
      await using server = await startTagServer({ role: 'preview' });
      const { headers, body } = await request(`${server.url}${path}`);
      expect(await body.text()).toContain('Preview failed to load');
      expect(headers['set-cookie']).toBeUndefined();
    },
  );

  test('sends a posted message to a waiting long poll', async () => {
    await using server = await startTagServer({ role: 'preview' });
    const poll = request(`${server.url}/gtm/get_memo`);
    const posted = await request(`${server.url}/gtm/post_memo?auth_code=s3cret-auth-t0ken`, {
      method: 'POST',
      body: '{"event":"page_view"}',
    });
    expect(posted.statusCode).toBe(200);
    const { statusCode, body } = await poll;
    expect([statusCode, await body.json()]).toEqual([200, ['{"event":"page_view"}']]);
  });

  test.each([
    ['GET', '/gtm/get_memo', 204],
    ['POST', '/gtm/post_memo?auth_code=guess', 403],
    ['GET', '/gtm/preview_status', 200],
    ['GET', '/gtm/unknown', 404],
    ['GET', '/g/collect', 404],
  ] as const)('%s %s answers %i', async (method, path, status) => {
    await using server = await startTagServer({ role: 'preview', longPollSeconds: 0 });
    expect((await request(`${server.url}${path}`, { method })).statusCode).toBe(status);
  });

  test('drops messages that are not fetched in time', async () => {
    await using server = await startTagServer({
      role: 'preview',
      longPollSeconds: 0,
      messageExpirySeconds: 0,
    });
    await request(`${server.url}/gtm/post_memo?auth_code=s3cret-auth-t0ken`, { method: 'POST', body: 'old' });
    expect((await request(`${server.url}/gtm/get_memo`)).statusCode).toBe(204);
  });
});
