import { describe, expect, test } from 'vitest';
import { formatManifest, parseManifest } from '../../../sites/manifest/load.ts';
import { manifestInput } from '../../support/manifest.ts';

const text = formatManifest(manifestInput());

describe('parseManifest', () => {
  test('reads back what formatManifest wrote, byte for byte', () => {
    const parsed = parseManifest(text, 'acme-shop.yaml');
    expect(parsed).toMatchObject({ ok: true });
    if (parsed.ok) expect(formatManifest(parsed.manifest)).toBe(text);
  });

  test('warns of `enabled: false` where it has no effect', () => {
    const off = (name: string) =>
      formatManifest(manifestInput('acme-shop', 1, { modules: { [name]: { enabled: false } } }));
    const warnings = (name: string) => {
      const parsed = parseManifest(off(name), 'acme-shop.yaml');
      return (
        parsed.ok &&
        parsed.warnings.map(({ path, line }) => [path, off(name).split('\n')[(line ?? 0) - 1]?.trim()])
      );
    };
    for (const name of ['server_proxy', 'custom_loader']) {
      expect(warnings(name)).toEqual([[`modules.${name}.enabled`, 'enabled: false']]);
    }
    expect(warnings('adblock_itp_detection')).toEqual([]);
  });

  test.each([
    ['an unknown key (its own line)', text.replace('ports:', 'prots:'), 'prots', 'prots:', /unknown key/],
    [
      'a value out of range',
      text.replace('processing: 20000', 'processing: 80'),
      'ports.processing',
      'processing: 80',
      /1024/,
    ],
    ['a missing key', text.replace(/^name: .*\n/m, ''), 'name', 'version', /expected string/],
    ['a moving image tag', text.replace(/image: .*/, 'image: gcr.io/x:stable'), 'image', 'image:', /pinned/],
    [
      'a plain container config',
      text.replace(/containerConfig: [^f]*/s, 'containerConfig: aWQ9MQ==\n'),
      'containerConfig',
      'containerConfig:',
      /age-encrypted/,
    ],
    ['broken YAML', `${text}x: [`, '', 'x: [', /sequence/],
    ['a key given twice', `${text}name: other\n`, '', 'name: other', /unique/],
    ['an alias', text.replace('Acme Shop', '*x'), '', '*x', /aliases/],
    ['a tag', text.replace('Acme Shop', '!!js/function x'), '', '!!js', /tags/],
    [
      'a site that differs from the file name',
      text.replace('site: acme-shop', 'site: other'),
      'site',
      'site: other',
      /file's name/,
    ],
    ['a newer version', text.replace('version: 1', 'version: 2'), 'version', 'version', /newer/],
    [
      'a foreign custom domain',
      text.replace('customDomains: []', 'customDomains: [x.other.example]'),
      'customDomains.0',
      'x.other',
      /registrable/,
    ],
    [
      'a hostname of 239 characters',
      text.replace('edge: acme-shop.example.net', `edge: ${'a.'.repeat(118)}net`),
      'hostnames.edge',
      'a.a.a',
      /at most 238 characters/,
    ],
    [
      'a custom domain whose file name would be too long',
      text.replace('customDomains: []', `customDomains: [${'a.'.repeat(110)}acme-shop.example]`),
      'customDomains.0',
      'a.a.a',
      /at most 236 characters/,
    ],
    [
      'a public suffix as domain',
      text.replace('domain: acme-shop.example', 'domain: co.uk'),
      'domains.0.domain',
      'co.uk',
      /public suffix/,
    ],
    [
      'a name with an nginx directive',
      text.replace('edge: acme-shop.example.net', 'edge: "a.net;}"'),
      'hostnames.edge',
      'a.net',
      /host name/,
    ],
  ])('reports path and line of %s', (_what, broken, path, needle, message) => {
    const line = broken.split('\n').findIndex((text) => text.includes(needle)) + 1;
    const parsed = parseManifest(broken, 'acme-shop.yaml');
    if (parsed.ok) expect.unreachable('the manifest was accepted');
    else {
      const problem = parsed.problems.find((candidate) => candidate.path === path);
      expect(problem).toMatchObject({ path, line });
      expect(problem?.message).toMatch(message);
    }
  });

  // Two texts of one identity would pass every comparison of claims, and be one thing to a database, a resolver or a browser.
  test.each([
    ['container', /container: 3f0a6679/, 'container: 3F0A6679', 'in lower case'],
    ['client', /client: 7c9e6679/, 'client: 7C9E6679', 'in lower case'],
    ['site', /site: acme-shop/, 'site: Acme-Shop', 'of a-z'],
    ['host', 'host: tag-1', 'host: TAG-1', 'of a-z'],
    ...[
      'ACME-shop.example.net',
      'acme-shop.example.net.',
      'acme-shop.example.\u212Aom',
      'a\u0308.example.net',
      '\u00e4.example.net',
      'acme\u3002example.net',
      'xn--acme-.example.net',
      'xn--MNCHEN-3YA.example.net',
      '127.0.0.1',
      '127.1',
      '0177.0.0.01',
      '0x7f.1',
      '1.2.3.04',
    ].map((name): [string, RegExp, string, string] => [
      'hostnames.edge',
      /edge: .*/,
      `edge: "${name}"`,
      'must be a lower-case host name',
    ]),
    ['domains.0.domain', 'domain: acme-shop.example', 'domain: 0x7f.0.0.1', 'must be a lower-case host name'],
    ['domains.0.webTagId', 'GTM-ABC1234', 'GTM-abc1234', 'GTM-ABC1234'],
    ['image', /sha256:a+/, `sha256:${'A'.repeat(64)}`, 'pinned'],
  ])('accepts one spelling of %s only: not %s → %s', (path, own, other, message) => {
    const parsed = parseManifest(text.replace(own, other), 'acme-shop.yaml');
    const problems = parsed.ok ? [] : parsed.problems;
    expect(problems).toContainEqual(
      expect.objectContaining({ path, message: expect.stringContaining(message) }),
    );
  });

  test('accepts an international name in its A-labels, and a name with digits', () => {
    for (const edge of ['xn--mnchen-3ya.example.net', '1.2.example', '127.0.0.1.example.net']) {
      expect(parseManifest(text.replace(/edge: .*/, `edge: ${edge}`), 'acme-shop.yaml')).toMatchObject({
        ok: true,
      });
    }
  });

  test.each([
    ['300 KiB of text', `# ${'x'.repeat(300 * 1024)}`],
    ['ten thousand open brackets', '['.repeat(10_000)],
    ['ten thousand nested sequences on one line', '- '.repeat(10_000)],
    [
      'a deeply indented mapping',
      Array.from({ length: 200 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n'),
    ],
    [
      'an alias bomb',
      `a: &a [x,x,x]\n${'bcdefghi'
        .split('')
        .map((name, index) => `${name}: &${name} [*${'abcdefgh'[index]}]`)
        .join('\n')}`,
    ],
  ])('refuses %s before parsing it', (_what, hostile) => {
    expect(parseManifest(hostile, 'acme-shop.yaml')).toMatchObject({ ok: false, reason: 'InvalidManifest' });
  });

  test('accepts a quoted text with the characters of an alias, anchor and tag', () => {
    const quoted = text.replace('name: Acme Shop', 'name: "*Acme & !Shop"');
    expect(parseManifest(quoted, 'acme-shop.yaml')).toMatchObject({ ok: true });
  });
});
