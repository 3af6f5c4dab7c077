import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  addDomain,
  patch,
  removeDomain,
  rotateLoaderToken,
  tombstone,
  withCustomDomain,
  withoutCustomDomain,
} from '../../../management/containers/edits.ts';
import { manifestSchema } from '../../../sites/manifest/schema.ts';
import { manifestInput } from '../../support/manifest.ts';

const current = manifestSchema.parse(
  manifestInput('acme-shop', 0, {
    customDomains: ['metrics.acme-shop.example'],
    features: { multi_domain: true },
    modules: { server_proxy: { paths: ['/data'] } },
  }),
);
const [first] = current.domains;

describe('a patch', () => {
  test.each([
    ['a name', { name: 'Other' }, { name: 'Other', image: current.image }],
    [
      'a feature',
      { features: { cookie_restoration: true } },
      { features: { multi_domain: true, cookie_restoration: true } },
    ],
    ['no module', { modules: {} }, { modules: current.modules }],
    [
      'an image',
      { image: `sha256:${'b'.repeat(64)}` },
      { image: `sha256:${'b'.repeat(64)}`, name: current.name },
    ],
  ])('with %s changes nothing else', (_what, given, expected) => {
    expect(patch(current, given)).toMatchObject(expected);
  });
});

describe('domains', () => {
  test('a known domain keeps its token and gets the web tag id', () => {
    expect(
      addDomain(current, { domain: 'acme-shop.example', webTagId: 'GTM-NEW1' }, randomBytes).domains,
    ).toEqual([{ ...first, webTagId: 'GTM-NEW1' }]);
  });

  test('a new domain is appended with a token of its own', () => {
    const { domains } = addDomain(current, { domain: 'shop.example', webTagId: 'GTM-NEW1' }, randomBytes);
    expect(domains).toEqual([
      first,
      { domain: 'shop.example', webTagId: 'GTM-NEW1', token: expect.stringMatching(/^ct_/) },
    ]);
  });

  test.each([
    ['an unknown domain', 'other.example', 'unknown_domain'],
    ['the last domain', 'acme-shop.example', 'last_domain'],
  ])('%s is not removed', (_what, domain, code) => {
    expect(() => removeDomain(current, domain)).toThrow(expect.objectContaining({ code }));
  });
});

describe('custom domains', () => {
  test('one that exists already changes nothing', () => {
    expect(withCustomDomain(current, 'metrics.acme-shop.example')).toBe(current);
  });

  test('one under the registrable part of a domain is added, and removed again', () => {
    const added = withCustomDomain(current, 'a.acme-shop.example');
    expect(added.customDomains).toEqual(['metrics.acme-shop.example', 'a.acme-shop.example']);
    expect(withoutCustomDomain(manifestSchema.parse(added), 'a.acme-shop.example').customDomains).toEqual([
      'metrics.acme-shop.example',
    ]);
  });

  test('a foreign one is not added, and an unknown one not removed', () => {
    expect(() => withCustomDomain(current, 'other.example')).toThrow(
      expect.objectContaining({ code: 'foreign_domain' }),
    );
    expect(() => withoutCustomDomain(current, 'a.acme-shop.example')).toThrow(
      expect.objectContaining({ code: 'unknown_domain' }),
    );
  });
});

describe('a rotation', () => {
  const rotate = (from: typeof current, number: number, until = '2030-01-31', today = '2029-12-31') => {
    const token = `lt_${String(number).padStart(16, '0')}`;
    return manifestSchema.parse(rotateLoaderToken(from, { token, until, today }));
  };
  const rotated = (times: number, until?: string) => {
    let manifest = current;
    for (let number = 0; number < times; number += 1) manifest = rotate(manifest, number, until);
    return manifest;
  };

  test('keeps ten previous loader tokens, and refuses to drop one before its grace date', () => {
    const ten = rotated(10);
    expect(ten.loaderToken).toBe('lt_0000000000000009');
    expect(ten.previousLoaderTokens).toHaveLength(10);
    expect(ten.previousLoaderTokens[0]).toEqual({ token: 'lt_0000000000000008', until: '2030-01-31' });
    expect(ten.previousLoaderTokens.at(-1)?.token).toBe(current.loaderToken);
    // The message has the date of an old token, not the one that the current token would get.
    expect(() => rotate(ten, 10, '2030-01-15')).toThrow(
      expect.objectContaining({
        code: 'too_many_loader_tokens',
        message: expect.stringContaining('2030-01-31'),
      }),
    );
  });

  test('drops tokens that are no longer accepted', () => {
    const later = rotate(rotated(10), 10, '2031-01-31', '2030-01-31');
    expect(later.previousLoaderTokens).toEqual([{ token: 'lt_0000000000000009', until: '2031-01-31' }]);
  });

  test('without grace is possible at any time: the old token ends at once', () => {
    const ten = rotated(10);
    const leaked = rotate(ten, 10, '2029-12-31');
    expect(leaked.loaderToken).toBe('lt_0000000000000010');
    expect(leaked.previousLoaderTokens).toEqual(ten.previousLoaderTokens);
  });
});

test('a removal is a tombstone, unless the manifest is protected', () => {
  expect(tombstone(current)).toEqual({ ...current, state: 'absent' });
  expect(() => tombstone({ ...current, protect: true })).toThrow(
    expect.objectContaining({ code: 'site_protected' }),
  );
});
