import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TerminalError } from '../../../base/errors.ts';
import { proxyApplier } from '../../../gitops/appliers/proxy/applier.ts';
import type { ProxyBackend, ProxySettings } from '../../../gitops/appliers/proxy/backend.ts';
import type { CertificateSource, ServedName } from '../../../gitops/appliers/proxy/certificates.ts';
import type { ProxySpec } from '../../../gitops/appliers/proxy/desired.ts';
import { embeddedBackend } from '../../../gitops/appliers/proxy/embedded/backend.ts';
import { nginxBackend } from '../../../gitops/appliers/proxy/nginx/backend.ts';
import { containerSpecs } from '../../../sites/manifest/containers.ts';
import type { ManifestInput } from '../../../sites/manifest/schema.ts';
import { Slots } from '../../../sites/manifest/slots.ts';
import { describeWith } from '../../support/components.ts';
import { loadedManifest } from '../../support/manifest.ts';
import { NGINX_SETTINGS } from '../../support/proxy/nginx.ts';
import { ask, IDENTITY, proxyHome, put } from '../../support/proxy/proxy.ts';
import { startUpstream } from '../../support/upstream.ts';

const ORIGIN = 'acme-origin.example.net';
const CUSTOM = 'metrics.acme.example';
const CHALLENGE = '/.well-known/acme-challenge/';
const THUMBPRINT = 'Zm9yLXRoZS10ZXN0cy1vbmx5LW5vdC1hLWtleS0wMTI';
const REFUSED = /alert|handshake|reset|disconnected|hang up/i;

function certificateBehaviour(name: string, backendOf: (settings: ProxySettings) => ProxyBackend): void {
  describe(`${name} and its certificates`, () => {
    const { signal } = new AbortController();
    let home: Awaited<ReturnType<typeof proxyHome>>;
    let upstream: Awaited<ReturnType<typeof startUpstream>>;
    let backend: ProxyBackend;
    /** Names with a certificate. The local CA acts as the authority. */
    let issued: Set<string>;
    /** Names for which the source fails. */
    let failing: Set<string>;
    let retained: (readonly ServedName[])[];

    beforeEach(async () => {
      home = await proxyHome();
      upstream = await startUpstream();
      issued = new Set();
      failing = new Set();
      retained = [];
      const { ca } = home;
      const certificates: CertificateSource = {
        async pathsFor(host, tls) {
          if (failing.has(host)) throw new TerminalError(`${host} has no known certificate`);
          return tls === 'files' || issued.has(host) ? await ca.pathsFor(host) : null;
        },
        async retain(served) {
          retained.push(served);
          await ca.retain(served);
        },
      };
      backend = backendOf({
        ...home.settings,
        edgeUpstream: { scheme: 'http', address: upstream.address, port: upstream.port },
        certificates,
        challengeKey: THUMBPRINT,
      });
      await backend.start();
    });
    afterEach(async () => {
      await backend.close();
      await upstream.close();
      await home.remove();
    });

    const at = () => [{ address: upstream.address, port: upstream.port }];
    const origin = (): ProxySpec => ({
      site: 'acme',
      vhosts: [{ kind: 'origin', host: ORIGIN, tls: 'acme', upstreams: at() }],
    });
    const custom: ProxySpec = {
      site: 'acme',
      vhosts: [{ kind: 'custom', host: CUSTOM, tls: 'acme', edgeHost: 'acme.example.net' }],
    };
    const both = () => [put('acme', origin()), put(`acme/${CUSTOM}`, custom)];
    const over = (host: string, path: string, headers = {}) =>
      ask(backend.endpoint(), { host, path, servername: null, headers });
    const intact = async () => (await backend.installed()).map(({ key, intact }) => [key, intact]);

    test('answer the authority on both names before they have a certificate, and serve no TLS', async () => {
      const outcomes = await backend.install(both());
      expect(outcomes).toEqual(both().map(() => ({ status: 'fulfilled', value: { changed: true } })));
      for (const host of [ORIGIN, CUSTOM]) {
        const answer = await over(host, `${CHALLENGE}a-token_1`);
        expect(answer).toMatchObject({ status: 200, body: `a-token_1.${THUMBPRINT}` });
        expect(answer.headers['content-type']).toBe('text/plain');
        for (const path of [CHALLENGE, `${CHALLENGE}a/b`, `${CHALLENGE}a%3Cb`, `${CHALLENGE}a.b`]) {
          expect((await over(host, path)).status, path).toBe(404);
        }
        await expect(ask(backend.endpoint(), { host })).rejects.toThrow(REFUSED);
      }
      expect(await intact()).toEqual([
        ['acme', true],
        [`acme/${CUSTOM}`, true],
      ]);
    });

    test('handle all else on plain HTTP as if there were no challenges', async () => {
      const fromFiles: ProxySpec = {
        site: 'beta',
        vhosts: [{ kind: 'custom', host: 'tags.beta.example', edgeHost: 'beta.example.net' }],
      };
      await backend.install([...both(), put('beta/tags.beta.example', fromFiles)]);
      await expect(over(ORIGIN, '/g/collect')).rejects.toThrow(REFUSED);
      expect((await over(CUSTOM, '/boot')).status).toBe(200);
      // A name with a certificate from files has no challenges: the path belongs to its edge.
      expect((await over('tags.beta.example', `${CHALLENGE}token`)).body).toContain('"url":"/.well-known/');
      await expect(over('unknown.example', `${CHALLENGE}token`)).rejects.toThrow(REFUSED);
    });

    test('serve TLS on each name that has a certificate, and continue to answer the authority', async () => {
      await backend.install(both());
      issued.add(CUSTOM);
      expect(await intact()).toEqual([
        ['acme', true],
        [`acme/${CUSTOM}`, false],
      ]);
      await backend.install(both());
      expect((await ask(backend.endpoint(), { host: CUSTOM })).status).toBe(200);
      await expect(ask(backend.endpoint(), { host: ORIGIN })).rejects.toThrow(REFUSED);
      expect((await over(CUSTOM, `${CHALLENGE}token`)).status).toBe(200);
      issued.add(ORIGIN);
      await backend.install(both());
      expect((await ask(backend.endpoint(), { host: ORIGIN })).status).toBe(200);
      await expect(over(ORIGIN, '/g/collect')).rejects.toThrow(REFUSED);
    });

    test('affect no other name if the source fails for one', async () => {
      await backend.install(both());
      failing.add(CUSTOM);
      expect(await intact()).toEqual([
        ['acme', true],
        [`acme/${CUSTOM}`, false],
      ]);
      const outcomes = await backend.install(both());
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    });

    test('keep no files of a removed custom domain, a former origin hostname or a removed site', async () => {
      const containers = { slots: new Slots('127.93'), originPort: backend.endpoint().tlsPort };
      const certificates = home.ca;
      const applier = proxyApplier({ backend, identity: IDENTITY, containers, certificates });
      const site = (extra: Partial<ManifestInput> = {}) => loadedManifest('acme-shop', 900, extra);
      const running = await Promise.all(
        containerSpecs(site(), containers).map(({ address, port }) => startUpstream({ address, port })),
      );
      const reach = async (...manifests: ReturnType<typeof site>[]) => {
        const desired = manifests.flatMap((manifest) => applier.desired(manifest));
        const { changes } = applier.plan(desired, await applier.observe(desired, signal));
        await Promise.all(changes.map((change) => applier.apply(change, signal)));
      };
      const listFiles = async () => {
        const names = await readdir(join(home.directory, 'ca'));
        return names.filter((file) => !file.startsWith('ca.')).sort();
      };
      const files = (...hosts: string[]) => hosts.flatMap((host) => [`${host}.key`, `${host}.pem`]);
      const [own, preview, tags] = [
        'acme-shop-origin.example.net',
        'acme-shop-preview.example.net',
        'tags.acme-shop.example',
      ];
      await reach(site({ customDomains: [tags] }));
      expect(await listFiles()).toEqual(files(own, preview, tags));
      await reach(site());
      expect(await listFiles()).toEqual(files(own, preview));
      const renamed = 'acme-shop-o2.example.net';
      await reach(site({ hostnames: { edge: 'acme-shop.example.net', origin: renamed, preview } }));
      expect(await listFiles()).toEqual(files(renamed, preview));
      await reach();
      expect(await listFiles()).toEqual([]);
      await Promise.all(running.map((one) => one.close()));
    });
  });
}

certificateBehaviour('the embedded proxy', embeddedBackend);

describeWith('nginx', 'with nginx', () => {
  certificateBehaviour('nginx', (settings) => nginxBackend({ ...settings, ...NGINX_SETTINGS }));
});
