import { describe, expect, test } from 'vitest';
import { describeSite } from '../../../gitops/manifest/description.ts';
import { kvDocuments } from '../../../gitops/manifest/documents.ts';
import { formatManifest } from '../../../gitops/manifest/load.ts';
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

  test('a manifest without `passthrough` has the documents that it had before the option', () => {
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
