import { X509Certificate } from 'node:crypto';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { connect } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import type { ProxyBackend, ProxySettings } from '../../../gitops/appliers/proxy/backend.ts';
import { embeddedBackend } from '../../../gitops/appliers/proxy/embedded/backend.ts';
import { nginxBackend } from '../../../gitops/appliers/proxy/nginx/backend.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import {
  type CertificatesDaemon,
  certificatesDaemon,
  type Options,
  SECRET,
} from '../../support/gitops/certificates-daemon.ts';
import { creation, World } from '../../support/management/world.ts';
import { ZONES } from '../../support/manifest.ts';
import { NGINX_SETTINGS } from '../../support/proxy/nginx.ts';

const ORIGIN = 'acme-shop-origin.example.net';
const PREVIEW = 'acme-shop-preview.example.net';
const CUSTOM = 'metrics.acme-shop.example.net';
const REFUSED = /alert|handshake|reset|disconnected|hang up/i;
const TIMEOUT = { timeoutMs: 60_000 };

describeWith(['nginx', 'knot', 'pebble'], 'certificates', () => {
  let daemon: CertificatesDaemon | undefined;
  const nginx = (settings: ProxySettings) => nginxBackend({ ...settings, ...NGINX_SETTINGS });
  const open = async (
    options: Partial<Options> = {},
    backendOf: (settings: ProxySettings) => ProxyBackend = nginx,
  ) => {
    daemon = await certificatesDaemon(backendOf, { subnet: '127.94', ...options });
    return daemon;
  };
  afterEach(async () => {
    await daemon?.close();
    daemon = undefined;
  });

  /** The certificate that is served to a visitor. */
  const shown = async (
    { endpoint }: Pick<CertificatesDaemon, 'endpoint'>,
    servername: string,
  ): Promise<X509Certificate> => {
    const { promise, resolve, reject } = Promise.withResolvers<X509Certificate>();
    const { address: host, tlsPort: port } = endpoint();
    const socket = connect({ host, port, servername, rejectUnauthorized: false });
    socket.once('error', reject);
    socket.once('secureConnect', () => resolve(new X509Certificate(socket.getPeerCertificate().raw)));
    return await promise.finally(() => socket.destroy());
  };

  /** All files of a folder; each must be readable by its owner only. */
  const isForItsOwner = async (folder: string) => {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((one) => one.isFile()).map(({ parentPath, name }) => join(parentPath, name));
    const names = ['account.json', 'account.key', `${ORIGIN}.pem`, `${PREVIEW}.pem`, 'ledger.json'];
    expect(files.map((file) => basename(file)).sort()).toEqual(names);
    for (const file of files) expect((await stat(file)).mode & 0o777, file).toBe(0o600);
    return files;
  };

  test.each([
    ['nginx', nginx],
    ['the embedded proxy', embeddedBackend],
  ])(
    'are obtained automatically for a new site behind %s, even if the authority refuses nonces',
    async (_name, backendOf) => {
      const { push, site, isReady, call, ...rest } = await open({ pebble: { refusedNonces: 15 } }, backendOf);
      const manifest = await site('acme-shop', 1);
      const answer = await call('POST', '/provision?wait=60', manifest);
      // The request ends only when visitors are served.
      expect(answer).toMatchObject({ status: 200, body: { operation: { status: 'succeeded' } } });
      for (const host of [ORIGIN, PREVIEW]) {
        expect((await rest.ask({ host })).status).toBe(200);
        expect(await rest.certificate('acme-shop', host)).toMatchObject({
          state: 'live',
          reason: '',
          addresses: ['127.0.0.1'],
          issuer: expect.stringContaining('Pebble'),
        });
      }
      await isReady('acme-shop');
      await push('acme-shop', { ...manifest, name: 'Another name' });
      await isReady('acme-shop');
      expect(rest.pebble.orders()).toBe(2);
      expect(JSON.stringify(await rest.status('acme-shop'))).not.toContain('PRIVATE');
      const files = await isForItsOwner(join(rest.directory, 'acme'));
      const logged = rest.logged();
      expect(logged).toContain('certificate issued');
      for (const file of files) {
        const keys = (await readFile(file, 'utf8')).match(/PRIVATE KEY-----\n[^-]+/g) ?? [];
        const lines = keys.flatMap((key) => key.split('\n').slice(1).filter(Boolean));
        for (const line of lines) expect(logged).not.toContain(line);
        expect(lines.length > 0, file).toBe(!file.endsWith('.json'));
      }
    },
  );

  test('are ordered for a site that the API has made; without one in a folder, its state says how to order one', async () => {
    const { listen, sitesRepo, recipient, ...rest } = await open();
    await using stack = new AsyncDisposableStack();
    const world = await World.open({
      bare: sitesRepo,
      daemon: { url: await listen(), secret: SECRET },
      settings: { ...ZONES, platformDomains: [], ageRecipient: recipient },
    });
    stack.defer(() => world.close());
    const client = await world.client();
    const create = async (siteId: string, extra = {}) => {
      const body = creation(client, `www.${siteId}.example`, { siteId, ...extra });
      const created = await world.call('POST', '/server-containers', { as: 'admin', body });
      expect(created.status, JSON.stringify(created.body)).toBe(202);
      await rest.serve(siteId);
      return `/server-containers/${created.body.id}`;
    };
    const reaches = (url: string, expected: object) =>
      eventually(
        async () => expect((await world.call('GET', url, { as: 'admin' })).body).toMatchObject(expected),
        TIMEOUT,
      );
    await reaches(await create('acme-shop'), { status: 'active' });
    expect((await shown(rest, ORIGIN)).issuer).toContain('Pebble');

    const url = await create('beta-shop', { tls: 'files' });
    const detail = expect.stringMatching(/set tls to acme \(API: PATCH .*, or put /);
    await reaches(url, { status: 'provisioning', state: { detail } });
    expect(await world.call('PATCH', url, { as: 'admin', body: { tls: 'acme' } })).toMatchObject({
      status: 200,
    });
    await reaches(url, { status: 'active' });
    expect((await shown(rest, 'beta-shop-origin.example.net')).issuer).toContain('Pebble');
  });

  test('wait for a custom domain’s DNS, state the reason, and block nothing else', async () => {
    const { knot, push, site, isReady, reaches, call, restart, ask, certificate, ...rest } = await open();
    await knot.update('add metrics.acme-shop 1 A 192.0.2.9');
    await push('acme-shop', await site('acme-shop', 1, { customDomains: [CUSTOM] }));
    await push('beta-shop', await site('beta-shop', 2));
    const must = `must be 127.0.0.1 or a CNAME to ${ORIGIN}`;
    await reaches('acme-shop', CUSTOM, {
      state: 'pending_dns',
      reason: `${CUSTOM} resolves to 192.0.2.9; it ${must}`,
      addresses: ['192.0.2.9'],
    });
    await isReady('acme-shop');
    await isReady('beta-shop');
    // Plain HTTP is served meanwhile.
    expect((await ask({ host: CUSTOM, servername: null })).status).toBe(200);
    await expect(ask({ host: CUSTOM })).rejects.toThrow(REFUSED);

    await knot.update('del metrics.acme-shop A', `add metrics.acme-shop 1 CNAME ${ORIGIN}.`);
    await reaches('acme-shop', CUSTOM, { state: 'live', reason: '' });
    await eventually(async () => expect((await ask({ host: CUSTOM })).status).toBe(200), TIMEOUT);

    await knot.update('del metrics.acme-shop CNAME', 'add metrics.acme-shop 1 A 192.0.2.9');
    await restart();
    await reaches('acme-shop', CUSTOM, {
      state: 'drifted',
      reason: expect.stringContaining(`resolves to 192.0.2.9; it ${must}; its certificate ends on `),
    });
    await isReady('acme-shop');
    expect((await ask({ host: CUSTOM })).status).toBe(200);

    const stored = async () =>
      (await readdir(join(rest.directory, 'acme'), { recursive: true })).filter((name) =>
        name.endsWith('.pem'),
      );
    expect((await stored()).some((name) => name.endsWith(`/${CUSTOM}.pem`))).toBe(true);
    const body = { site: 'acme-shop', domain: CUSTOM };
    expect(await call('DELETE', '/custom-domain?wait=60', body)).toMatchObject({ status: 200 });
    await expect(ask({ host: CUSTOM, servername: null })).rejects.toThrow(REFUSED);
    await expect(ask({ host: CUSTOM })).rejects.toThrow(REFUSED);
    expect((await stored()).some((name) => name.endsWith(`/${CUSTOM}.pem`))).toBe(false);
    expect(await certificate('acme-shop', CUSTOM)).toBeUndefined();
    const orders = rest.pebble.orders();
    expect(orders).toBe(5);

    expect(await call('POST', '/deprovision?wait=60', { site: 'acme-shop' })).toMatchObject({ status: 200 });
    expect((await stored()).some((name) => name.includes('acme-shop'))).toBe(false);
    expect((await stored()).filter((name) => name.includes('beta-shop'))).toHaveLength(2);
  });

  test('are not ordered against left-over records, and are as soon as these are removed', async () => {
    const { knot, push, site, isReady, reaches, pebble } = await open();
    const name = 'metrics.acme-shop';
    await knot.update(`add ${name} 1 A 127.0.0.1`, `add ${name} 1 AAAA 2001:db8::9`);
    await knot.update(`add ${name} 1 CAA 0 issue ";"`);
    await push('acme-shop', await site('acme-shop', 1, { customDomains: [CUSTOM] }));
    const caa = `the CAA records of ${CUSTOM} let no authority issue certificates: add the record ${CUSTOM} CAA 0 issue "the authority’s domain"`;
    const foreign = 'resolves to 2001:db8::9; remove the left-over record AAAA 2001:db8::9; it must be';
    await reaches('acme-shop', CUSTOM, {
      state: 'pending_dns',
      reason: expect.stringMatching(new RegExp(`${foreign} .*; ${caa}`)),
    });
    await isReady('acme-shop');
    await knot.update(`del ${name} AAAA`);
    await reaches('acme-shop', CUSTOM, { state: 'pending_certificate', reason: caa });
    expect(pebble.orders()).toBe(2);
    await knot.update(`del ${name} CAA`);
    await reaches('acme-shop', CUSTOM, { state: 'live', reason: '' });
    expect(pebble.orders()).toBe(3);
  });

  test('are ordered from an authority that binds accounts to one of the operator', async () => {
    const [kid, hmacKey] = ['key-1', 'zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W'];
    const pebble = { boundTo: { [kid]: hmacKey } };
    const { push, site, isReady } = await open({ pebble, acme: { binding: { kid, hmacKey } } });
    await push('acme-shop', await site('acme-shop', 1));
    await isReady('acme-shop');
  });

  test('that live for six days are renewed with a third of that left', async () => {
    let ahead = 0;
    const day = 86_400_000;
    const opened = await open({
      pebble: { lifetimeSeconds: (6 * day) / 1000 },
      acme: { now: () => Date.now() + ahead },
    });
    const { push, site, isReady, pebble } = opened;
    const manifest = await site('acme-shop', 1);
    await push('acme-shop', manifest);
    await isReady('acme-shop');
    const first = await shown(opened, ORIGIN);
    ahead = 3.7 * day;
    await push('acme-shop', { ...manifest, name: 'Not due yet' });
    await isReady('acme-shop');
    expect(pebble.orders()).toBe(2);
    ahead = 4.1 * day;
    await push('acme-shop', { ...manifest, name: 'Due' });
    await eventually(() => expect(pebble.orders()).toBe(4), TIMEOUT);
    ahead = 0;
    await eventually(async () => {
      expect((await shown(opened, ORIGIN)).serialNumber).not.toBe(first.serialNumber);
    }, TIMEOUT);
  });

  test('are ordered several at once from a slow authority', async () => {
    const { push, site, isReady, pebble } = await open({ pebble: { slowSeconds: 2 } });
    for (const [index, name] of ['acme-shop', 'beta-shop'].entries()) {
      await push(name, await site(name, index + 1));
    }
    for (const name of ['acme-shop', 'beta-shop']) await isReady(name);
    expect(pebble.orders()).toBe(4);
  });

  test('can be ordered again after an outage in which the authority lost the account', async () => {
    const { pebble, push, site, isReady, reaches, status, warnings } = await open();
    await push('acme-shop', await site('acme-shop', 1));
    await isReady('acme-shop');
    await pebble.stop();
    await push('beta-shop', await site('beta-shop', 2));
    await reaches('beta-shop', 'beta-shop-origin.example.net', {
      state: 'pending_certificate',
      reason: expect.stringMatching(/^the authority can’t be reached \(ECONNREFUSED\); next attempt at /),
    });
    expect(await status('beta-shop')).toMatchObject({ ready: false, reason: 'CertificatePending' });
    expect(await status('acme-shop')).toMatchObject({ ready: true });
    await pebble.start();
    await isReady('beta-shop');
    expect(warnings.join('\n')).toContain('no certificate');
  });

  test('are ordered no more often than the pauses allow if the authority refuses the name', async () => {
    const { push, site, reaches, isReady, pebble } = await open({
      pebble: { refusedNames: [CUSTOM] },
      acme: {
        pauses: {
          refused: { firstMs: 3_600_000, longestMs: 3_600_000 },
          outage: { firstMs: 1, longestMs: 1 },
        },
      },
    });
    const { knot } = daemon as CertificatesDaemon; // it was opened just now
    await knot.update('add metrics.acme-shop 1 A 127.0.0.1');
    await push('acme-shop', await site('acme-shop', 1, { customDomains: [CUSTOM] }));
    await isReady('acme-shop');
    const reason = expect.stringMatching(
      /^the authority refused the order \(rejectedIdentifier\): .* next attempt at /,
    );
    await reaches('acme-shop', CUSTOM, { state: 'pending_certificate', reason });
    const before = pebble.requests('/order-plz');
    await daemon?.restart();
    await reaches('acme-shop', CUSTOM, { state: 'pending_certificate', reason });
    await isReady('acme-shop');
    expect(pebble.requests('/order-plz')).toBe(before);
  });

  test('that were uploaded serve the names that they cover, before DNS leads here', async () => {
    const opened = await open();
    const { push, site, isReady, reaches, pebble, pairFor, encrypt, restart } = opened;
    const uploaded = async (name: string, keyOf = name) => ({
      mode: 'uploaded' as const,
      others: 'acme' as const,
      certificate: (await pairFor(name)).certificate,
      key: await encrypt((await pairFor(keyOf)).key),
    });
    const manifest = await site('acme-shop', 1, { customDomains: [CUSTOM] });
    await push('acme-shop', { ...manifest, tls: await uploaded(CUSTOM) });
    await isReady('acme-shop');
    await reaches('acme-shop', CUSTOM, { state: 'live', reason: '' });
    const first = await shown(opened, CUSTOM);
    expect([first.checkHost(CUSTOM), first.issuer.includes('Pebble')]).toEqual([CUSTOM, false]);
    expect((await shown(opened, ORIGIN)).issuer).toContain('Pebble');
    expect(pebble.orders()).toBe(2);

    await push('acme-shop', { ...manifest, tls: await uploaded(CUSTOM, 'b.example.net') });
    const reason = expect.stringMatching(
      /^tls\.certificate: the key is not that of .*; the last valid one stays/,
    );
    await reaches('acme-shop', CUSTOM, { state: 'drifted', reason });
    await restart();
    expect((await shown(opened, CUSTOM)).serialNumber).toBe(first.serialNumber);

    await opened.forget(CUSTOM);
    await push('acme-shop', { ...manifest, tls: await uploaded(CUSTOM) });
    await reaches('acme-shop', CUSTOM, { state: 'live', reason: '' });
    await eventually(async () => {
      expect((await shown(opened, CUSTOM)).serialNumber).not.toBe(first.serialNumber);
    }, TIMEOUT);
  });

  test('are renewed in time, and the new ones are served without a request to the API', async () => {
    let ahead = 0;
    // This host only reports drift, and a renewed certificate must not count as drift.
    const opened = await open({ acme: { now: () => Date.now() + ahead }, drift: { proxy: 'warn' } });
    const { push, site, isReady, pebble } = opened;
    const manifest = await site('acme-shop', 1);
    await push('acme-shop', manifest);
    await isReady('acme-shop');
    const first = await shown(opened, ORIGIN);
    const life = first.validToDate.getTime() - first.validFromDate.getTime();
    ahead = 0.8 * life;
    await push('acme-shop', { ...manifest, name: 'Triggers a pass' });
    await eventually(() => expect(pebble.orders()).toBeGreaterThanOrEqual(4), TIMEOUT);
    ahead = 0;
    await eventually(async () => {
      const now = await shown(opened, ORIGIN);
      expect(now.serialNumber).not.toBe(first.serialNumber);
      expect(now.checkHost(ORIGIN)).toBe(ORIGIN);
    }, TIMEOUT);
    await isReady('acme-shop');
  });

  test('of an operator are served from the last valid files, and a reason says what is missing', async () => {
    const opened = await open();
    const { site, push, reaches, isReady, call, certificate, putFiles, restart, directory } = opened;
    const tls = join(directory, 'tls');
    await push('acme-shop', await site('acme-shop', 1, { tls: { mode: 'files' } }));
    const pending = { state: 'pending_certificate', notAfter: null, issuer: null, nextCheck: null };
    for (const host of [ORIGIN, PREVIEW]) {
      const reason = expect.stringContaining(`put ${host}.pem and ${host}.key, or _.example.net.pem and`);
      await reaches('acme-shop', host, { ...pending, reason });
    }
    await putFiles('_.example.net', '*.example.net');
    await call('POST', '/sync');
    await isReady('acme-shop');
    await reaches('acme-shop', ORIGIN, { state: 'live', reason: '', issuer: expect.any(String) });
    const first = await shown(opened, ORIGIN);

    // Overwritten in place; the reload for another site reads all files again.
    await writeFile(join(tls, '_.example.net.key'), 'half a k');
    await push('beta-shop', await site('beta-shop', 2));
    await isReady('beta-shop');
    await call('POST', '/sync');
    const drifted = {
      state: 'drifted',
      reason: expect.stringContaining(
        'holds no unencrypted private key in PEM; the last valid one stays in use',
      ),
    };
    await reaches('acme-shop', ORIGIN, drifted);
    await isReady('acme-shop');
    expect((await shown(opened, ORIGIN)).serialNumber).toBe(first.serialNumber);
    await restart();
    expect((await shown(opened, ORIGIN)).serialNumber).toBe(first.serialNumber);
    await reaches('acme-shop', ORIGIN, drifted);

    await putFiles('_.example.net', '*.example.net');
    await call('POST', '/sync');
    await reaches('acme-shop', ORIGIN, { state: 'live', reason: '' });
    await eventually(async () => {
      expect((await shown(opened, ORIGIN)).serialNumber).not.toBe(first.serialNumber);
    }, TIMEOUT);
    const kept = join(directory, 'tls-served');
    await eventually(async () => expect(await readdir(kept)).toHaveLength(1), TIMEOUT);
    expect(await call('POST', '/deprovision?wait=60', { site: 'acme-shop' })).toMatchObject({ status: 200 });
    expect(await certificate('acme-shop', ORIGIN)).toBeUndefined();
    expect(await readdir(kept)).toEqual([]);
    // The operator's own files are never removed.
    expect(await readdir(tls)).toHaveLength(2);
  });

  test('wait for the limit on orders after their store is lost', async () => {
    const { push, site, isReady, pebble, directory, restart, reaches } = await open({
      acme: { perHour: 20 },
    });
    await push('acme-shop', await site('acme-shop', 1));
    await isReady('acme-shop');
    // The burst of two orders is used up, and the next order is allowed in three minutes.
    const [folder = ''] = await readdir(join(directory, 'acme'));
    await rm(join(directory, 'acme', folder, 'names'), { recursive: true });
    await restart();
    const reason =
      'waits: this host places at most 20 orders an hour and 8 at once, and the authority may allow fewer';
    for (const host of [ORIGIN, PREVIEW]) {
      await reaches('acme-shop', host, { state: 'pending_certificate', reason });
    }
    expect(pebble.orders()).toBe(2);
  });
});
