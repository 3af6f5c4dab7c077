import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { request } from 'undici';
import { afterEach, describe, expect, test } from 'vitest';
import { TAG_SERVER_ENTRY } from '../../../sites/demo/tag-server/entry.ts';
import { eventually } from '../../support/eventually.ts';
import { containerConfig } from '../../support/tag-server.ts';

const TLS = new URL('../../support/tls/', import.meta.url);
const CERTIFICATE = fileURLToPath(new URL('localhost.cert.pem', TLS));
/** The name in the certificate; not every system resolves it. */
const PREVIEW_HOST = 'shop-origin.tagyard.localhost';

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

function run(env: Record<string, string>): ChildProcess {
  const child = fork(TAG_SERVER_ENTRY, [], {
    env: { HOST: '127.0.0.1', PORT: '0', ...env },
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  children.push(child);
  return child;
}

/** Its URL, read from its log when it listens. */
async function listening(child: ChildProcess): Promise<string> {
  for await (const chunk of child.stdout ?? []) {
    const port = /listens on port (\d+)/.exec(String(chunk))?.[1];
    if (port !== undefined) return `http://127.0.0.1:${port}`;
  }
  throw new Error('the process exited before it listened');
}

async function refusal(env: Record<string, string>): Promise<[code: unknown, stderr: string]> {
  const child = run(env);
  const stderr = child.stderr === null ? '' : text(child.stderr);
  const [code] = await once(child, 'exit');
  return [code, await stderr];
}

describe('the stand-in as a process', () => {
  test.each([
    [{}, 'Missing or invalid container config parameter: id'],
    [{ CONTAINER_CONFIG: containerConfig({ auth: 'bad' }) }, 'failed with status 403'],
    [{ CONTAINER_CONFIG: containerConfig({ env: 'BAD' }) }, 'failed with status 403'],
    [{ CONTAINER_CONFIG: containerConfig(), PREVIEW_SERVER_URL: 'http://p' }, 'Invalid preview server URL'],
  ])('refuses to start with %j', async (env, message) => {
    const [code, stderr] = await refusal({ ...env });
    expect(code).toBe(1);
    expect(stderr).toContain(message);
  });

  test('exits with 0 at SIGTERM, also during a long poll', async () => {
    const child = run({ CONTAINER_CONFIG: containerConfig(), RUN_AS_PREVIEW_SERVER: 'true' });
    const url = await listening(child);
    const poll = request(`${url}/gtm/get_memo`).catch((error: unknown) => error);
    await eventually(async () => {
      const { body } = await request(`${url}/gtm/preview_status`);
      expect(await body.json()).toEqual({ active: true });
    });
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(await poll).toBeInstanceOf(Error);
  });

  test('exits with its supervisor', async () => {
    const child = run({ CONTAINER_CONFIG: containerConfig() });
    await listening(child);
    child.disconnect();
    expect(await once(child, 'exit')).toEqual([0, null]);
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
      const trusted = await listening(run({ ...env, NODE_EXTRA_CA_CERTS: CERTIFICATE }));
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

      const untrusted = await listening(run(env));
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
