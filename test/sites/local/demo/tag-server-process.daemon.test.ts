import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { tagServerBehaviours } from '../../../conform/tag-server/index.ts';
import type { StartedRole } from '../../../conform/tag-server/target.ts';
import { eventually } from '../../../support/eventually.ts';
import { containerConfig } from '../../../support/tag-server.ts';
import { forkTagServer, startTagServerProcess, urlOf } from '../../../support/tag-server-process.ts';

const TLS = new URL('../../../support/tls/', import.meta.url);
const CERTIFICATE = fileURLToPath(new URL('localhost.cert.pem', TLS));
/** The name in the certificate; not every system resolves it. */
const PREVIEW_HOST = 'shop-origin.tagyard.localhost';

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
});

/** A stand-in that listens, until the test ends. */
async function start(env: Record<string, string>): Promise<string> {
  const started = await startTagServerProcess(env);
  if (!started.listens) throw new Error(`the process ended before it listened: ${started.output}`);
  stops.push(started.stop);
  return started.url;
}

/** A stand-in whose process the test itself watches. */
function run(env: Record<string, string>) {
  const child = forkTagServer(env);
  stops.push(async () => void child.kill('SIGKILL'));
  return child;
}

/** A server in place of Google, over plain HTTP. */
async function serve(listener: RequestListener) {
  const server = createHttpServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // It listens on TCP.
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const AUTH = 's3cret-auth-t0ken';

describe('the stand-in behaves as the image does: it', () => {
  const roles: StartedRole[] = [];
  beforeAll(async () => {
    for (const role of [{}, { RUN_AS_PREVIEW_SERVER: 'true' }]) {
      const started = await startTagServerProcess({ CONTAINER_CONFIG: containerConfig(), ...role });
      if (!started.listens) throw new Error(started.output);
      roles.push(started);
    }
  });
  afterAll(async () => {
    for (const { stop } of roles) await stop();
  });

  const rows = tagServerBehaviours.map(({ name, check }) => [name, check] as const);
  test.each(rows)('%s', async (_name, check) => {
    const [tagging, preview] = roles.map(({ url }) => url);
    if (tagging === undefined || preview === undefined) throw new Error('a role is missing');
    const config = { id: 'GTM-SERVER1', env: '1', auth: AUTH };
    await check({ config, tagging, preview, startWith: startTagServerProcess });
  });
});

describe('the stand-in as a process', () => {
  test('exits with 0 at SIGTERM, also during a long poll', async () => {
    const child = run({ CONTAINER_CONFIG: containerConfig(), RUN_AS_PREVIEW_SERVER: 'true' });
    const url = await urlOf(child);
    const poll = request(`${url}/gtm/get_memo?id=GTM-SERVER1`, {
      headers: { cookie: 'gtm_debug=GTM-SERVER1=abc123' },
    }).catch((error: unknown) => error);
    // The server answers in the order of arrival, so the poll is open by now.
    await request(`${url}/healthz`);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(await poll).toBeInstanceOf(Error);
  });

  test('exits with its supervisor', async () => {
    const child = run({ CONTAINER_CONFIG: containerConfig() });
    await urlOf(child);
    child.disconnect();
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  test('waits for its container without a time limit, and still exits with its supervisor (docs/facts.md, Start and run)', async () => {
    const asked = Promise.withResolvers<string | undefined>();
    await using google = await serve((incoming) => asked.resolve(incoming.url));
    const child = run({ CONTAINER_CONFIG: containerConfig(), TAG_UPSTREAM: google.url });
    const exit = once(child, 'exit');
    expect(await asked.promise).toBe(`/server.js?id=GTM-SERVER1&gtm_preview=env-1&gtm_auth=${AUTH}`);
    expect(child.exitCode).toBeNull();
    child.disconnect();
    expect(await exit).toEqual([0, null]);
  });

  test('fetches its container again, keeps the old one if that fails, and reports the age of the one in use', async () => {
    let status = 200;
    let fetches = 0;
    await using google = await serve((_incoming, answer) => {
      fetches += 1;
      answer.writeHead(status).end('code');
    });
    const url = await start({
      CONTAINER_CONFIG: containerConfig(),
      TAG_UPSTREAM: google.url,
      CONTAINER_REFRESH_SECONDS: '1',
    });
    status = 403;
    const health = async (limit: string) =>
      (await request(`${url}/healthz`, { headers: { 'x-sgtm-healthz': limit } })).statusCode;
    await eventually(async () => {
      expect(fetches).toBeGreaterThan(1);
      expect(await health('container_refresh_millis=1000')).toBe(500);
    });
    expect(await health('server_start_millis=600000')).toBe(200);
    expect((await request(`${url}/g/collect?v=2`)).statusCode).toBe(200);
  });

  test('fetches the draft of a debug session from its upstream, and passes on the status of a refusal', async () => {
    const seen: (string | undefined)[] = [];
    await using google = await serve((incoming, answer) => {
      seen.push(incoming.url);
      answer.writeHead(incoming.url?.includes('workspace') ? 200 : 404).end('code');
    });
    const child = await start({
      CONTAINER_CONFIG: containerConfig({ env: 'workspace' }),
      TAG_UPSTREAM: google.url,
    });
    const status = async (preview: string) => {
      const cookie = `gtm_auth=GTM-SERVER1=x; gtm_debug=GTM-SERVER1=1; gtm_preview=GTM-SERVER1=${preview}`;
      return (await request(`${child}/g/collect`, { headers: { cookie } })).statusCode;
    };
    expect([await status('workspace-7'), await status('env-9')]).toEqual([200, 404]);
    expect(seen.slice(1)).toEqual([
      '/server.js?id=GTM-SERVER1&gtm_preview=workspace-7&gtm_auth=x',
      '/server.js?id=GTM-SERVER1&gtm_preview=env-9&gtm_auth=x',
    ]);
  });

  test('forwards /gtm/debug/ to its upstream, with the debug cookies only below /gtm/debug/api/', async () => {
    const seen: unknown[] = [];
    await using google = await serve((incoming, answer) => {
      seen.push([incoming.method, incoming.url, incoming.headers.cookie]);
      answer.writeHead(203, { 'x-kept': 'yes' }).end('of Google');
    });
    const url = await start({
      CONTAINER_CONFIG: containerConfig(),
      RUN_AS_PREVIEW_SERVER: 'true',
      TAG_UPSTREAM: google.url,
    });
    const headers = { cookie: 'a=b; gtm_auth=GTM-SERVER1=x; gtm_preview=GTM-SERVER1=env-1' };
    for (const path of ['/any/gtm/debug/page.js?a=1', '/gtm/debug/api/state']) {
      const answer = await request(`${url}${path}`, { headers });
      expect([answer.statusCode, answer.headers['x-kept'], await answer.body.text()]).toEqual([
        203,
        'yes',
        'of Google',
      ]);
    }
    expect(seen).toEqual([
      ['GET', '/debug/page.js?a=1', undefined],
      ['GET', '/debug/api/state', 'gtm_auth=GTM-SERVER1=x; gtm_debug=; gtm_preview=GTM-SERVER1=env-1'],
    ]);
  });

  test('forwards /gtm/* to the preview server over verified TLS, and answers 500 if it can’t verify', async () => {
    const seen: { url?: string | undefined; headers: NodeJS.Dict<string | string[]>; body: string }[] = [];
    const preview = createServer(
      { cert: readFileSync(CERTIFICATE), key: readFileSync(new URL('localhost.key.pem', TLS)) },
      async (incoming, answer) => {
        seen.push({ url: incoming.url, headers: incoming.headers, body: await text(incoming) });
        answer
          .writeHead(201, { 'set-cookie': ['a=1', 'b=2'], 'x-kept': 'yes' })
          .end('from the preview server');
      },
    ).listen(0, '127.0.0.1');
    await once(preview, 'listening');
    const { port } = preview.address() as AddressInfo; // It listens on TCP.
    const env = {
      CONTAINER_CONFIG: containerConfig(),
      PREVIEW_SERVER_URL: `https://${PREVIEW_HOST}:${port}`,
    };
    try {
      const trusted = await start({ ...env, NODE_EXTRA_CA_CERTS: CERTIFICATE });
      const answer = await request(`${trusted}/any/gtm/post_memo?auth_code=a%2Fb`, {
        method: 'POST',
        headers: { host: 'shop.example', 'x-gtm-server-preview': 'ZW52' },
        body: 'memo',
      });
      expect([answer.statusCode, await answer.body.text()]).toEqual([201, 'from the preview server']);
      expect(answer.headers).toMatchObject({ 'set-cookie': ['a=1', 'b=2'], 'x-kept': 'yes' });
      expect(seen).toHaveLength(1);
      expect(seen[0]).toMatchObject({
        url: '/any/gtm/post_memo?auth_code=a%2Fb',
        body: 'memo',
        headers: {
          host: `${PREVIEW_HOST}:${port}`,
          forwarded: 'host=shop.example',
          'x-gtm-server-preview': 'ZW52',
        },
      });

      const untrusted = await start(env);
      const refused = await request(`${untrusted}/gtm/debug`);
      expect(refused.statusCode).toBe(500);
      expect(await refused.body.text()).toContain('Make sure the PREVIEW_SERVER_URL is set correctly');
      expect(seen).toHaveLength(1);
    } finally {
      preview.closeAllConnections();
      preview.close();
    }
  });
});
