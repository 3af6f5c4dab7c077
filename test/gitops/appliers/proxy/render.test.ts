import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TerminalError } from '../../../../base/errors.ts';
import type { ProxySpec } from '../../../../gitops/appliers/proxy/desired.ts';
import { readHttp2 } from '../../../../gitops/appliers/proxy/nginx/http2.ts';
import { type MainSettings, mainSchema } from '../../../../gitops/appliers/proxy/nginx/quote.ts';
import { nginxRenderer } from '../../../../gitops/appliers/proxy/nginx/render.ts';
import { TEMPLATES } from '../../../../gitops/appliers/proxy/nginx/templates.ts';
import { NO_TRUSTED_PEERS } from '../../../../gitops/appliers/proxy/policy.ts';
import { TAG_SERVER } from '../../../../sites/manifest/resources/tag-server.ts';
import { parseNginx, shapeOf } from '../../../support/proxy/nginx-syntax.ts';

const SETTINGS: MainSettings = {
  listen: ['127.0.0.1', '[::1]'],
  httpPort: 8088,
  tlsPort: 8443,
  statusPort: 8099,
  hopSecret: 'hop-secret-of-the-tests-0123456789',
  challengeKey: null,
  edge: { scheme: 'https', address: '192.0.2.1', port: 443 },
  ca: '/etc/ssl/certs/ca-certificates.crt',
  geoModule: null,
  http2: 'parameter',
  limits: { requestsPerSecond: 500, burst: 1000, connections: 500, all: 2048 },
  systemLogs: null,
  shutdownSeconds: 30,
  workerProcesses: 'auto',
  previousHopSecret: null,
  gateway: null,
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

describe('HTTP/2', () => {
  const listens = (http2: MainSettings['http2']) => {
    const text = nginxRenderer(TEMPLATES, { ...SETTINGS, http2 }).vhosts(
      domain('m.acme.example', 'a.example'),
      [paths],
    );
    return [/listen .* ssl http2;/.test(text), /^ {2}http2 on;$/m.test(text)];
  };

  test.each([
    ['nginx version: nginx/1.22.1\nconfigure arguments: --with-http_v2_module', 'parameter', [true, false]],
    ['nginx version: nginx/1.25.0\nconfigure arguments: --with-http_v2_module', 'parameter', [true, false]],
    ['nginx version: nginx/1.25.1\nconfigure arguments: --with-http_v2_module', 'directive', [false, true]],
    ['nginx version: nginx/1.26.3\nconfigure arguments: --with-http_v2_module', 'directive', [false, true]],
    ['nginx version: nginx/1.22.1\nconfigure arguments: --with-debug', 'none', [false, false]],
  ] as const)('is written as nginx’s build needs it: %s', (build, spelling, expected) => {
    expect(readHttp2(build)).toBe(spelling);
    expect(listens(spelling)).toEqual(expected);
  });
});

test('a tag server takes the headers that nginx takes', () => {
  const [, lines, size] = /large_client_header_buffers (\d+) (\d+)k;/.exec(TEMPLATES.treatment) ?? [];
  expect(TAG_SERVER.maxHeaderOctets).toBeGreaterThan((4 + Number(lines) * Number(size)) * 1024);
});

describe('the rendered vhosts', () => {
  test('contain every address, name and file in its place', () => {
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

  test('verify an https edge by name', () => {
    const text = renderer.vhosts(domain('tags.acme.example', 'acme.example.net'), [paths]);
    expect(renderer.main(NO_TRUSTED_PEERS)).toContain('proxy_ssl_verify on;');
    expect(text).toContain('proxy_ssl_name acme.example.net;');
    expect(text).toContain('proxy_set_header Host "acme.example.net";');
  });

  test('contain no secret; only the main file does', () => {
    const spec = domain('tags.acme.example', 'acme.example.net');
    expect(renderer.vhosts(spec, [paths])).not.toContain(SETTINGS.hopSecret);
    expect(renderer.main(NO_TRUSTED_PEERS)).toContain(SETTINGS.hopSecret);
  });

  test('have the same form with and without a database of places, which only the main file reads', () => {
    const geoModule = '/usr/lib/nginx/modules/ngx_http_geoip2_module.so';
    const located = nginxRenderer(TEMPLATES, { ...SETTINGS, geoModule });
    expect(located.skeleton).toContain(`load_module "${geoModule}";`);
    expect(located.main(NO_TRUSTED_PEERS, '/geo/city.mmdb')).toContain('geoip2 "/geo/city.mmdb" {');
    expect(located.form).toBe(renderer.form);
    for (const text of [located.main(NO_TRUSTED_PEERS), renderer.main(NO_TRUSTED_PEERS), renderer.skeleton]) {
      expect(text).not.toMatch(/geoip2|load_module/);
    }
    expect(() => located.main(NO_TRUSTED_PEERS, '/geo/"; } evil {')).toThrow(TerminalError);
  });

  test('have a new form when a setting that they depend on changes', () => {
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
  test.each([
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

  test.each(['tls/a.pem', '/tls/"a".pem', '/tls/$host.pem', '/tls/a;.pem', '/tls/a\n.pem', ''])(
    'is refused as a path: %j',
    (cert) => {
      expect(() => renderer.vhosts(site('a.example'), [{ ...paths, cert }])).toThrow(TerminalError);
    },
  );

  const piece = fc.constantFrom(
    ...[
      'a',
      '.',
      '-',
      '_',
      'example',
      ';',
      '{',
      '}',
      '$',
      '${',
      '"',
      "'",
      '\\',
      '\n',
      '\r',
      '#',
      ' ',
      '\t',
      '\0',
    ],
    ...['é', '\u2028', '\ud800', '*', '~', ':', '/', '@', '%', '|', '0', '127.0.0.1', 'include', 'on'],
  );
  const hostile = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.uint8Array({ maxLength: 24 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
    fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
    // Valid ones too, or the property would hold for a renderer that refuses everything.
    fc.domain(),
    fc.array(piece, { maxLength: 4 }).map((pieces) => `a.example${pieces.join('')}`),
  );
  const maybe = <T>(value: T) => fc.option(fc.constant(value), { nil: null });

  test.each([
    ['origin', 'files'],
    ['preview', 'acme'],
    ['preview', 'inside'],
    ['custom', 'files'],
    ['custom', 'acme'],
  ] as const)(
    'is refused, or becomes one word of a configuration with the shape of the template: %s, %s',
    (kind, mode) => {
      const tls = mode === 'acme' ? ({ tls: 'acme' } as const) : {};
      const vhosts = (host: string, edgeHost: string, address: string): ProxySpec['vhosts'] => {
        const upstreams = [{ address, port: 20000 }];
        if (kind === 'custom') return [{ kind, host, ...tls, edgeHost }];
        if (kind === 'origin') return [{ kind, host, upstreams }];
        return [{ kind, host, upstreams, tls: mode }];
      };
      const spec = (site: string, ...rest: Parameters<typeof vhosts>): ProxySpec => ({
        site,
        vhosts: vhosts(...rest),
      });
      const expected = parseNginx(
        renderer.vhosts(spec('acme', 'a.example', 'b.example', '127.0.0.1'), [paths]),
      );
      let rendered = 0;
      fc.assert(
        fc.property(
          fc.oneof(maybe('acme'), hostile),
          hostile,
          fc.oneof(maybe('b.example'), hostile),
          fc.oneof(maybe('127.0.0.1'), hostile),
          fc.oneof(maybe(''), hostile),
          (site, host, edgeHost, address, file) => {
            const wanted = spec(site ?? 'acme', host, edgeHost ?? 'b.example', address ?? '127.0.0.1');
            const certificate = { cert: `/tls/${file ?? ''}a.pem`, key: `/tls/${file ?? ''}a.key` };
            let text: string;
            try {
              text = renderer.vhosts(wanted, [certificate]);
            } catch (error) {
              expect(error).toBeInstanceOf(TerminalError);
              return;
            }
            rendered += 1;
            const tree = parseNginx(text);
            expect(shapeOf(tree)).toEqual(shapeOf(expected));
            const server = tree.findLast(({ name }) => name === 'server')?.block ?? [];
            const argument = (name: string) => server.find((directive) => directive.name === name)?.args;
            expect(argument('server_name')).toEqual([host]);
            expect(argument('ssl_certificate')).toEqual([certificate.cert]);
            expect(argument('access_log')).toEqual([`logs/sites/${wanted.site}.log`, 'tagyard']);
          },
        ),
        { numRuns: 2_000 },
      );
      expect(rendered).toBeGreaterThan(50);
    },
  );

  test('of the main file is refused too, or doesn’t change its shape', () => {
    const range = fc.oneof(
      hostile,
      fc.ipV4().map((address) => `${address}/24`),
      fc.ipV6().map((a) => `${a}/48`),
    );
    let rendered = 0;
    fc.assert(
      fc.property(hostile, range, range, (text, cloudflare, own) => {
        const expected = parseNginx(renderer.main({ cloudflare: ['192.0.2.0/24'], own: ['2001:db8::/32'] }));
        try {
          const main = renderer.main({ cloudflare: [cloudflare], own: [own] });
          expect(shapeOf(parseNginx(main))).toEqual(shapeOf(expected));
          rendered += 1;
        } catch (error) {
          expect(error).toBeInstanceOf(TerminalError);
        }
        const settings = { ...SETTINGS, hopSecret: text, listen: [text], ca: `/${text}` };
        const kept = mainSchema.safeParse(settings);
        if (kept.success) throw new Error('a text was accepted as a secret and as an address');
        const ca = mainSchema.safeParse({ ...SETTINGS, ca: `/${text}` });
        if (ca.success) {
          const main = nginxRenderer(TEMPLATES, ca.data).main(NO_TRUSTED_PEERS);
          expect(shapeOf(parseNginx(main))).toEqual(shapeOf(parseNginx(renderer.main(NO_TRUSTED_PEERS))));
        }
      }),
      { numRuns: 300 },
    );
    expect(rendered).toBeGreaterThan(10);
  });
});
