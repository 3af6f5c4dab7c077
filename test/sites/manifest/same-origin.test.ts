import { describe, expect, test } from 'vitest';
import { kvDocuments } from '../../../sites/manifest/documents.ts';
import { manifestSchema } from '../../../sites/manifest/schema.ts';
import { loadedManifest, manifestInput } from '../../support/manifest.ts';

const [HASH, OLD_HASH] = ['a'.repeat(64), 'b'.repeat(64)];
const domain = { domain: 'acme.example', webTagId: 'GTM-ABC1234', token: 'ct_container0tok0000' };
const forwarder = { generation: 1, tokenHash: HASH };

function registered(sameOrigin: object | undefined) {
  const entry = { ...domain, ...(sameOrigin === undefined ? {} : { sameOrigin }) } as typeof domain;
  const documents = kvDocuments(loadedManifest('acme-shop', 0, { domains: [entry] }), { originPort: 443 });
  const registry = documents.find(({ namespace }) => namespace === 'SITE_REGISTRY')?.value;
  return registry !== undefined && 'domains' in registry ? registry.domains[0] : undefined;
}

describe('the registry', () => {
  test('has the path and the hashes of both tokens, without their generation', () => {
    const previous = { tokenHash: OLD_HASH, until: '2027-12-01T00:00:00.000Z' };
    expect(registered({ path: '/m3trics1', forwarder })?.sameOrigin).toEqual({
      path: '/m3trics1',
      tokens: [{ hash: HASH }],
      loader: 'lt_loader0token00000',
    });
    expect(
      registered({ path: '/m3trics1', forwarder: { ...forwarder, generation: 2, previous } })?.sameOrigin,
    ).toEqual({
      path: '/m3trics1',
      tokens: [{ hash: HASH }, { hash: OLD_HASH, until: '2027-12-01T00:00:00.000Z' }],
      loader: 'lt_loader0token00000',
    });
  });

  test('has no member sameOrigin for a domain without it', () => {
    expect(registered(undefined)).not.toHaveProperty('sameOrigin');
  });
});

describe('the manifest', () => {
  const problems = (sameOrigin: unknown) =>
    manifestSchema
      .safeParse({ ...manifestInput(), domains: [{ ...domain, sameOrigin }] })
      .error?.issues.map(({ path }) => path.slice(3).join('.')) ?? [];

  test.each(['/m3trics1', '/abcdef', '/123456789012'])('accepts the path %s', (path) => {
    expect(problems({ path, forwarder })).toEqual([]);
  });

  test.each([
    ['without a slash', 'm3trics1'],
    ['too short', '/abcde'],
    ['too long', '/1234567890123'],
    ['upper case', '/Metrics1'],
    ['two segments', '/m3trics1/x'],
    ['a slash at the end', '/m3trics1/'],
    ['dots', '/......'],
    ['the tag server’s static files', '/static'],
    ['the tag server’s health', '/healthy'],
    ['a word of EasyList', '/adserve'],
    ['a word of EasyPrivacy', '/hitcounter'],
  ])('refuses a path: %s', (_what, path) => {
    expect(problems({ path, forwarder })).toContain('path');
  });

  test.each([
    ['/webhooks', ['path']],
    ['/webhook1', []],
  ])('with the forwarded paths /webhooks/* and the prefix %s has the faults %j', (path, expected) => {
    const own = { ...manifestInput(), modules: { server_proxy: { paths: ['/data', '/webhooks/*'] } } };
    const { error } = manifestSchema.safeParse({
      ...own,
      domains: [{ ...domain, sameOrigin: { path, forwarder } }],
    });
    expect(error?.issues.map((issue) => issue.path.at(-1)) ?? []).toEqual(expected);
  });

  test.each([
    ['/t1a2b3c4', '/t1a2b3c4', ['path']],
    ['/t1a2b3c4', '/t1a2b3c4/deep', ['path']],
    ['/t1a2b3c5', '/t1a2b3c4', []],
  ])('with the prefix %s and the tag serving path %s has the faults %j', (path, tagServingPath, expected) => {
    const { error } = manifestSchema.safeParse({
      ...manifestInput(),
      modules: { server_proxy: { tagServingPath, passthrough: true } },
      domains: [{ ...domain, sameOrigin: { path, forwarder } }],
    });
    expect(error?.issues.map((issue) => issue.path.at(-1)) ?? []).toEqual(expected);
  });

  test.each([
    ['t1a2b3c4/gtm.js', ['scriptPath']],
    ['shop/a.js', ['scriptPath']],
    ['shop/a.js/b.js', []],
    ['static/a.js', ['scriptPath']],
    ['_/a.js', ['scriptPath']],
    ['t1a2b3c4.js', []],
    ['gtm.js', []],
    ['assets/a.js', []],
  ])(
    'with the loader’s address %s below a prefix and with forwarded paths has the faults %j',
    (scriptPath, expected) => {
      const { error } = manifestSchema.safeParse({
        ...manifestInput(),
        modules: {
          custom_loader: { scriptPath },
          server_proxy: { tagServingPath: '/t1a2b3c4', paths: ['/shop/a.js'], passthrough: true },
        },
        domains: [{ ...domain, sameOrigin: { path: '/m3trics1', forwarder } }],
      });
      expect(error?.issues.map((issue) => issue.path.at(-1)) ?? []).toEqual(expected);
    },
  );

  test.each([
    ['a token in place of its hash', { tokenHash: 'ft_abc' }, 'forwarder.tokenHash'],
    ['a hash in upper case', { tokenHash: 'A'.repeat(64) }, 'forwarder.tokenHash'],
    ['the generation 0', { generation: 0 }, 'forwarder.generation'],
    ['a day as `until`', { previous: { tokenHash: HASH, until: '2027-12-01' } }, 'forwarder.previous.until'],
    ['an unknown key', { token: 'ft_abc' }, 'forwarder'],
  ])('refuses a forwarder with %s', (_what, wrong, path) => {
    expect(problems({ path: '/m3trics1', forwarder: { ...forwarder, ...wrong } })).toContain(path);
  });
});
