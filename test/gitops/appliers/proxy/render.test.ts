import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TerminalError } from '../../../../gitops/appliers/contract.ts';
import type { ProxySpec } from '../../../../gitops/appliers/proxy/desired.ts';
import type { MainSettings } from '../../../../gitops/appliers/proxy/nginx/quote.ts';
import { nginxRenderer } from '../../../../gitops/appliers/proxy/nginx/render.ts';
import { TEMPLATES } from '../../../../gitops/appliers/proxy/nginx/templates.ts';

const SETTINGS: MainSettings = {
  listen: ['127.0.0.1', '[::1]'],
  httpPort: 8088,
  tlsPort: 8443,
  statusPort: 8099,
  hopSecret: 'hop-secret-of-the-tests-0123456789',
  challengeKey: null,
  edge: { scheme: 'https', address: '192.0.2.1', port: 443 },
  ca: '/etc/ssl/certs/ca-certificates.crt',
  shutdownSeconds: 30,
  workerProcesses: 'auto',
};
const paths = { cert: '/tls/a.pem', key: '/tls/a.key' };
const renderer = nginxRenderer(TEMPLATES, SETTINGS);

const site = (host: string, address = '127.77.1.2'): ProxySpec => ({
  site: 'acme',
  vhosts: [{ kind: 'origin', host, upstreams: [{ address, port: 20000 }] }],
});
const domain = (host: string, edgeHost: string): ProxySpec => ({
  site: 'acme',
  vhosts: [{ kind: 'custom', host, edgeHost }],
});

/** The directives' names in order, blocks and all: the shape of a configuration. */
function shape(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => `${line.split(' ')[0]} ${line.at(-1)}`);
}

describe('the rendered vhosts', () => {
  it('put every address, name and file where it belongs', () => {
    const text = renderer.vhosts(site('acme-origin.example.net'), [paths]);
    for (const line of [
      'upstream tagyard_origin_acme {',
      'server 127.77.1.2:20000;',
      'keepalive_timeout 4s;',
      'listen 127.0.0.1:8443 ssl;',
      'listen [::1]:8443 ssl;',
      'server_name acme-origin.example.net;',
      'ssl_certificate "/tls/a.pem";',
      'proxy_pass http://tagyard_origin_acme;',
    ]) {
      expect(text).toContain(line);
    }
  });

  it('verify an https edge by name', () => {
    const text = renderer.vhosts(domain('tags.acme.example', 'acme.example.net'), [paths]);
    expect(text).toContain('proxy_ssl_verify on;');
    expect(text).toContain('proxy_ssl_name acme.example.net;');
    expect(text).toContain('proxy_set_header Host "acme.example.net";');
  });

  it('hold no secret; only the main file does', () => {
    const spec = domain('tags.acme.example', 'acme.example.net');
    expect(renderer.vhosts(spec, [paths])).not.toContain(SETTINGS.hopSecret);
    expect(renderer.main()).toContain(SETTINGS.hopSecret);
  });

  it('have another form when a setting that they depend on changes', () => {
    const forms = [
      SETTINGS,
      { ...SETTINGS, tlsPort: 9443 },
      { ...SETTINGS, listen: ['127.0.0.1'] },
      { ...SETTINGS, edge: { ...SETTINGS.edge, scheme: 'http' as const } },
    ].map((settings) => nginxRenderer(TEMPLATES, settings).form);
    expect(new Set(forms).size).toBe(forms.length);
    expect(nginxRenderer(TEMPLATES, { ...SETTINGS, hopSecret: 'another-secret-0123456789' }).form).toBe(
      forms[0],
    );
  });
});

describe('a hostile value', () => {
  it.each([
    ['a semicolon', site('a.example; return 200')],
    ['a line break', site('a.example\nserver_name b.example')],
    ['braces', site('a.example{}')],
    ['a variable', site('$host.example')],
    ['a quote', site('a".example')],
    ['NUL', site('a\0.example')],
    ['a space', site('a.example b.example')],
    ['a wildcard', site('*.example.net')],
    ['a regular expression', site('~^.*$')],
    ['an address that is a name', site('a.example', 'metadata.internal')],
    ['an address with more', site('a.example', '127.0.0.1:1; server 192.0.2.1')],
    ['an edge name that ends the directive', domain('a.example', 'edge.example";')],
    ['a site that is no id', { ...site('a.example'), site: 'acme {' }],
  ])('is refused, not escaped: %s', (_case, spec) => {
    expect(() => renderer.vhosts(spec, [paths])).toThrow(TerminalError);
  });

  it.each(['tls/a.pem', '/tls/"a".pem', '/tls/$host.pem', '/tls/a;.pem', '/tls/a\n.pem', ''])(
    'is refused as a path: %j',
    (cert) => {
      expect(() => renderer.vhosts(site('a.example'), [{ ...paths, cert }])).toThrow(TerminalError);
    },
  );

  it('is refused or leaves the shape of the configuration as it is', () => {
    const expected = shape(renderer.vhosts(domain('tags.acme.example', 'acme.example.net'), [paths]));
    const piece = fc.constantFrom(
      'a',
      '.',
      '-',
      'example',
      ';',
      '{',
      '}',
      '$',
      '"',
      "'",
      '\\',
      '\n',
      '#',
      ' ',
      '\0',
      'é',
    );
    const name = fc.oneof(
      fc.string(),
      fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
    );
    fc.assert(
      fc.property(name, name, name, (host, edgeHost, file) => {
        try {
          const certificate = { cert: `/tls/${file}`, key: '/tls/a.key' };
          expect(shape(renderer.vhosts(domain(host, edgeHost), [certificate]))).toEqual(expected);
        } catch (error) {
          expect(error).toBeInstanceOf(TerminalError);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
