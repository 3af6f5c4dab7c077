import { describe, expect, test } from 'vitest';
import { proxyResources, proxySpecSchema } from '../../../../gitops/appliers/proxy/desired.ts';
import { fileNameOf, keyOf } from '../../../../gitops/appliers/proxy/file-name.ts';
import { containerSpecs } from '../../../../sites/manifest/containers.ts';
import { Slots } from '../../../../sites/manifest/slots.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const settings = { slots: new Slots('127.77'), originPort: 8443 };
const custom = { customDomains: ['metrics.acme-shop.example', 'tags.acme-shop.example'] };

describe('the vhosts of a site', () => {
  test('are one resource for its own two names, and one for each custom domain', () => {
    const resources = proxyResources(loadedManifest('acme-shop', 0, custom), settings);
    expect(resources.map(({ key }) => key)).toEqual([
      'acme-shop',
      'acme-shop/metrics.acme-shop.example',
      'acme-shop/tags.acme-shop.example',
    ]);
    expect(resources.flatMap(({ spec }) => spec.vhosts.map(({ kind, host }) => `${kind} ${host}`))).toEqual([
      'origin acme-shop-origin.example.net',
      'preview acme-shop-preview.example.net',
      'custom metrics.acme-shop.example',
      'custom tags.acme-shop.example',
    ]);
  });

  test('include the preview server’s name in the site’s network, with a certificate of this host', () => {
    const previewNameOf = (site: string) => `${site}-preview-01234`;
    const manifest = loadedManifest('acme-shop', 0, { tls: { mode: 'acme' } });
    const [site] = proxyResources(manifest, { ...settings, previewNameOf });
    const [, preview, inside] = site?.spec.vhosts ?? [];
    expect(preview).toMatchObject({ host: 'acme-shop-preview.example.net', tls: 'acme' });
    expect(inside).toEqual({ ...preview, host: 'acme-shop-preview-01234', tls: 'inside' });
    expect(proxySpecSchema.safeParse(site?.spec).success).toBe(true);
  });

  test('point to every replica, by address and port', () => {
    const manifest = loadedManifest('acme-shop', 0, { resources: { processing: { replicas: 3 } } });
    const [site] = proxyResources(manifest, settings);
    const origin = site?.spec.vhosts.find(({ kind }) => kind === 'origin');
    const processing = containerSpecs(manifest, settings).filter(({ role }) => role === 'processing');
    expect(processing).toHaveLength(3);
    expect(origin).toMatchObject({ upstreams: processing.map(({ address, port }) => ({ address, port })) });
  });

  test('have the manifest’s options, except those that aren’t for the preview server', () => {
    const manifest = loadedManifest('acme-shop', 0, { ...custom, maxBodyMb: 2 });
    const previewNameOf = (site: string) => `${site}-preview-01234`;
    const vhosts = proxyResources(manifest, { ...settings, previewNameOf }).flatMap(
      ({ spec }) => spec.vhosts,
    );
    const own = { maxBodyMb: 2 };
    expect(vhosts.map((vhost) => [vhost.kind, 'options' in vhost ? vhost.options : null])).toEqual([
      ['origin', own],
      ['preview', undefined],
      ['preview', undefined],
      ['custom', own],
      ['custom', own],
    ]);
  });

  test('change with the containers, and a new custom domain doesn’t change the others', () => {
    const hashes = (...manifest: Parameters<typeof loadedManifest>) =>
      new Map(proxyResources(loadedManifest(...manifest), settings).map(({ key, hash }) => [key, hash]));
    const before = hashes('acme-shop', 0);
    const image = `sha256:${'b'.repeat(64)}`;
    expect(hashes('acme-shop', 0, { image }).get('acme-shop')).not.toBe(before.get('acme-shop'));
    expect(hashes('acme-shop', 0, custom).get('acme-shop')).toBe(before.get('acme-shop'));
  });
});

test('the edition of a certificate, or its absence, changes the hash of its own vhost only', () => {
  const manifest = loadedManifest('acme-shop', 0, { ...custom, tls: { mode: 'acme' } });
  const renewed = 'metrics.acme-shop.example';
  const hashes = (edition: string | undefined) =>
    proxyResources(manifest, settings, (host) => (host === renewed ? edition : 'first')).map(
      ({ hash }) => hash,
    );
  const [site, metrics, tags] = hashes('first');
  for (const edition of ['second', undefined]) {
    expect(hashes(edition)).toEqual([site, expect.not.stringMatching(`^${metrics}$`), tags]);
  }
});

describe('the file name of a key', () => {
  test.each([
    ['acme', 'acme.conf'],
    ['acme/metrics.acme.example', 'acme@metrics.acme.example.conf'],
  ])('%s is %s, from which the key is read back', (key, file) => {
    expect(fileNameOf(key, '.conf')).toBe(file);
    expect(keyOf(file)).toBe(key);
  });

  test.each(['Acme.conf', 'acme@x@y.conf', 'acme@no host.conf', '@metrics.acme.example.conf'])(
    'is never %s, which counts as its own key',
    (file) => {
      expect(keyOf(file)).toBe(file);
    },
  );
});
