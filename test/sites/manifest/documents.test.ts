import { describe, expect, test } from 'vitest';
import { mayForbidVendor } from '../../../sites/manifest/consent.ts';
import { describeSite } from '../../../sites/manifest/description.ts';
import { kvDocuments } from '../../../sites/manifest/documents.ts';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { loadedManifest, manifestInput } from '../../support/manifest.ts';

describe('the paths that the edge forwards (docs/facts.md, Paths)', () => {
  test.each([
    [undefined, []],
    [{ enabled: true }, []],
    [{ paths: ['/data', '/webhooks/*'] }, ['/data', '/webhooks/*']],
    [{ paths: ['/data'], passthrough: false }, ['/data']],
    [{ paths: ['/data'], passthrough: true }, ['/data', '/*']],
    [{ passthrough: true }, ['/*']],
    [{ paths: ['/data'], tagServingPath: '/t1a2b3c4' }, ['/data', '/t1a2b3c4/*']],
    [{ tagServingPath: '/t1a2b3c4', passthrough: true }, ['/t1a2b3c4/*', '/*']],
  ])('with the options %j are %j', (options, expected) => {
    const manifest = loadedManifest('acme-shop', 0, {
      modules: options === undefined ? {} : { server_proxy: options },
    });
    const registry = kvDocuments(manifest, { originPort: 443 }).find(
      ({ namespace }) => namespace === 'SITE_REGISTRY',
    );
    expect(registry?.value).toMatchObject({ proxyPaths: expected });
    const addresses = { edgePublicUrl: 'https://{host}', tlsPort: 443 };
    expect(describeSite(manifest, addresses).proxyPaths).toEqual(expected);
  });

  test('are written without `passthrough` if the manifest has none', () => {
    const manifest = loadedManifest('acme-shop', 0, { modules: { server_proxy: { paths: ['/data'] } } });
    const config = kvDocuments(manifest, { originPort: 443 }).find(
      ({ namespace }) => namespace === 'EDGE_CONFIG',
    );
    expect(config?.value).toMatchObject({ modules: { server_proxy: { enabled: true, paths: ['/data'] } } });
    expect(JSON.stringify(config)).not.toContain('passthrough');
    const input = manifestInput('acme-shop', 0, { modules: { server_proxy: { paths: ['/data'] } } });
    expect(formatManifest(input)).not.toContain('passthrough');
  });
});

describe('the names of data layers', () => {
  const registryOf = (server_proxy: object) =>
    kvDocuments(loadedManifest('acme-shop', 0, { modules: { server_proxy } }), { originPort: 443 }).find(
      ({ namespace }) => namespace === 'SITE_REGISTRY',
    )?.value;

  test('are in the registry too, so that they don’t depend on one store', () => {
    expect(registryOf({ dataLayers: ['shopLayer', '$'] })).toMatchObject({ dataLayers: ['shopLayer', '$'] });
  });

  test('are not in the registry of a site without the option', () => {
    expect(registryOf({})).not.toHaveProperty('dataLayers');
  });
});

test('the registry has the options of plugins that fail closed and are on, and of no other', () => {
  const features = { anonymizer: true, user_id: true };
  const modules = { anonymizer: { drop: ['uid'] }, consent_gate: { purpose: 'ads' as const } };
  const registryOf = (manifest: Parameters<typeof kvDocuments>[0]) =>
    kvDocuments(manifest, { originPort: 443 }).find(({ namespace }) => namespace === 'SITE_REGISTRY')?.value;
  expect(registryOf(loadedManifest('acme-shop', 0, { features, modules }))).toHaveProperty('closed', {
    features: { anonymizer: true },
    modules: { anonymizer: expect.objectContaining({ drop: ['uid'] }) },
  });
  expect(registryOf(loadedManifest('acme-shop', 0))).not.toHaveProperty('closed');
});

describe('the rules of consent', () => {
  const rulesOf = (manifest: Parameters<typeof kvDocuments>[0]) =>
    kvDocuments(manifest, { originPort: 443 }).flatMap(({ namespace, value }) =>
      namespace === 'SITE_REGISTRY' || namespace === 'EDGE_CONFIG' ? [value] : [],
    );
  const rules = {
    consent: 'required',
    consentMode: 'basic',
    fallback: 'none',
    regions: [{ places: ['US', 'US-CA'], consent: 'opt_out' }],
    consentMaxDays: 180,
  } as const;

  test('are in both documents of the edge, so that they don’t depend on one store', () => {
    const documents = rulesOf(loadedManifest('acme-shop', 0, structuredClone(rules) as object));
    expect(documents).toHaveLength(2);
    for (const document of documents) expect(document).toMatchObject(rules);
  });

  test('with their defaults, keep the documents and the text of a site as they were before these keys existed', () => {
    const written: Parameters<typeof manifestInput>[2] = {
      consentMode: 'advanced',
      fallback: 'vendor',
      regions: [],
      consentMaxDays: 395,
    };
    const manifest = loadedManifest('acme-shop', 0, written);
    for (const document of rulesOf(manifest)) {
      expect(document).toMatchObject({ consent: 'opt_out' });
      expect(JSON.stringify(document)).not.toMatch(/consentMode|fallback|regions|consentMaxDays/);
    }
    const text = formatManifest(manifestInput('acme-shop', 0, written));
    expect(text).not.toMatch(/consentMode|fallback|regions|consentMaxDays/);
    expect(manifest).toEqual(loadedManifest('acme-shop', 0));
  });

  test.each([
    [{ regions: [{ places: [] }] }, /places/],
    [{ regions: [{ places: ['de'] }] }, /ISO 3166/],
    [{ regions: [{ places: ['DE', 'DE'] }] }, /DE is listed twice/],
    [{ regions: [{ places: ['DE'] }, { places: ['FR', 'DE'] }] }, /DE is listed twice/],
    [{ consentMode: 'none' }, /consentMode/],
    [{ consentMaxDays: 396 }, /consentMaxDays/],
  ])('%j is refused', (extra, message) => {
    expect(() => loadedManifest('acme-shop', 0, extra as object)).toThrow(message);
  });

  test.each([
    [{}, false],
    [{ consent: 'required' }, false],
    [{ consentMode: 'basic' }, true],
    [{ fallback: 'none' }, true],
    [{ regions: [{ places: ['DE'], consentMode: 'basic' }] }, true],
    [{ regions: [{ places: ['DE'], fallback: 'none' }] }, true],
  ])('with %j, a page must wait for the loader before it asks the vendor: %s', (extra, expected) => {
    expect(mayForbidVendor(loadedManifest('acme-shop', 0, extra as object))).toBe(expected);
  });
});
