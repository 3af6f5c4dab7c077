import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'node:tls';
import getPort from 'get-port';
import { expect, test } from 'vitest';
import type { ProxySettings } from '../../../gitops/appliers/proxy/backend.ts';
import { nginxBackend } from '../../../gitops/appliers/proxy/nginx/backend.ts';
import { runningMaster } from '../../../gitops/appliers/proxy/nginx/process.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { certificatesDaemon } from '../../support/gitops/certificates-daemon.ts';
import { NGINX_SETTINGS } from '../../support/proxy/nginx.ts';

const SITES = ['acme-shop', 'beta-shop'];
const HOSTS = SITES.flatMap((site) => [`${site}-origin.example.net`, `${site}-preview.example.net`]);
const TIMEOUT = { timeoutMs: 90_000 };
/** 20 requests a second. */
const PAUSE_MS = 50;

describeWith(['nginx', 'knot', 'pebble'], 'a host whose state folder is lost', () => {
  test('serves every request, with a valid certificate, until it has ordered new ones', async () => {
    const tlsPort = await getPort({ host: '127.0.0.1' });
    const nginx = (settings: ProxySettings) => nginxBackend({ ...settings, tlsPort, ...NGINX_SETTINGS });
    const daemon = await certificatesDaemon(nginx, { subnet: '127.95', pebble: { slowSeconds: 2 } });
    await using stack = new AsyncDisposableStack();
    stack.defer(() => daemon.close());
    const { push, site, isReady, ask, restart, directory } = daemon;
    for (const [index, name] of SITES.entries()) await push(name, await site(name, index + 1));
    for (const name of SITES) await isReady(name);
    const serials = () => Promise.all(HOSTS.map((host) => serialOf(tlsPort, host)));
    const before = await serials();

    const failed: string[] = [];
    let answered = 0;
    const requests = new Set<Promise<void>>();
    const load = setInterval(() => {
      const host = HOSTS[(answered + failed.length) % HOSTS.length] ?? '';
      const request = ask({ host }).then(
        ({ status }) => {
          if (status === 200) answered += 1;
          else failed.push(`${host}: ${status}`);
        },
        (error: unknown) => void failed.push(`${host}: ${error}`),
      );
      requests.add(request.finally(() => requests.delete(request)));
    }, PAUSE_MS);
    stack.defer(() => clearInterval(load));

    await restart(async () => {
      for (const name of ['acme', 'proxy', 'tls-served']) {
        await rm(join(directory, name), { recursive: true, force: true });
      }
    });
    await eventually(async () => {
      const now = await serials();
      for (const [index, serial] of now.entries()) expect(serial).not.toBe(before[index]);
    }, TIMEOUT);
    for (const name of SITES) await isReady(name);
    clearInterval(load);
    await Promise.all(requests);
    expect([failed.length, ...failed.slice(0, 2)]).toEqual([0]);
    expect(answered).toBeGreaterThan(20);
    const prefix = join(directory, 'proxy');
    expect(Number(await readFile(join(prefix, 'nginx.pid'), 'utf8'))).toBe(await runningMaster(prefix));
  });
});

async function serialOf(port: number, servername: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect({ host: '127.0.0.1', port, servername, rejectUnauthorized: false });
  socket.once('error', reject);
  socket.once('secureConnect', () => resolve(socket.getPeerCertificate().serialNumber));
  return await promise.finally(() => socket.destroy());
}
