import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type {
  Check,
  HostReport,
  NameAnswer,
  VerificationReport,
} from '../../../edge/verification/contract.ts';
import { Secret } from '../../../sites/manifest/secrets.ts';
import { eventually } from '../../support/eventually.ts';
import {
  type Fault,
  type Passing,
  startVerificationStage,
  VERIFICATION_SECRET,
  type VerificationStage,
} from '../../support/verification-stage.ts';

/** On a busy machine one verification can exceed its budget; then it is repeated. */
const PATIENT = { timeoutMs: 60_000 };

const failing = ({ checks }: VerificationReport) => checks.filter(({ status }) => status === 'failed');
const names = (report: VerificationReport) => [...new Set(failing(report).map(({ name }) => name))];

let stage: VerificationStage;
beforeAll(async () => {
  stage = await startVerificationStage();
});
afterAll(() => stage?.close());

test('a verification finds no problem in a healthy site, and runs every check', async () => {
  const report = await eventually(async () => {
    const found = await stage.verify();
    expect(failing(found)).toEqual([]);
    return found;
  }, PATIENT);
  expect(report).toMatchObject({ status: 'passed' });
  expect(report.checks.filter(({ status }) => status === 'skipped')).toEqual([]);
  expect(report.checks.map(({ name, subject }) => `${name} ${subject ?? ''}`.trim())).toEqual([
    'host_report',
    'container_config',
    'edge_routes',
    'processing_health',
    'preview_health',
    'preview_url',
    'single_preview',
    'path_prefix',
    'underscore_paths',
    'query_forwarded',
    'cookies_forwarded',
    'loader shop.tagyard.localhost',
    'loader tags.shop.localhost',
    'boot shop.localhost',
    'boot other.localhost',
    'boot tags.shop.localhost',
    'script shop.localhost',
    'script other.localhost',
    'script tags.shop.localhost',
    'cors_allowed shop.localhost',
    'cors_allowed other.localhost',
    'cors_allowed tags.shop.localhost',
    'cors_refused shop.tagyard.localhost',
    'cors_refused tags.shop.localhost',
    'dns shop.tagyard.localhost',
    'dns shop-origin.tagyard.localhost',
    'dns shop-preview.tagyard.localhost',
    'dns tags.shop.localhost',
    'certificate shop-origin.tagyard.localhost',
    'certificate shop-preview.tagyard.localhost',
    'certificate tags.shop.localhost',
    'client_address shop.tagyard.localhost',
    'client_address tags.shop.localhost',
    'cookie_lifetime shop.localhost',
    'cookie_lifetime other.localhost',
    'consent',
    'block_lists shop.tagyard.localhost',
    'block_lists tags.shop.localhost',
    'block_lists',
  ]);
});

test('a verification removes its own entries from the stores', async () => {
  await stage.verify();
  expect((await stage.edge.kv.COOKIES.list()).keys).toEqual([]);
});

interface Row {
  readonly fault: string;
  readonly breaks: () => Promise<void> | void;
  readonly repairs?: () => Promise<void> | void;
  /** The checks that must report a problem; no other check may. */
  readonly finds: readonly Check['name'][];
  readonly subject?: string;
  readonly fix: RegExp;
}

const passing = (fault: (passing: Passing) => Fault | undefined) => () => {
  stage.fault = fault;
};
const atEdge = ({ url }: Passing) => url.hostname === stage.manifest.hostnames.edge;

describe('each fault gives only the expected findings, each with a fix', () => {
  afterEach(() => {
    stage.fault = () => undefined;
  });

  const rows: Row[] = [
    {
      fault: 'the preview server is stopped',
      breaks: () => stage.removeContainer('preview'),
      repairs: () => stage.run(stage.manifest),
      finds: ['preview_health', 'preview_url', 'single_preview'],
      fix: /see tagyard status/,
    },
    {
      fault: 'the processing server is stopped',
      breaks: () => stage.removeContainer('processing'),
      repairs: () => stage.run(stage.manifest),
      finds: ['container_config', 'processing_health', 'preview_url', 'underscore_paths'],
      fix: /See tagyard status for why it doesn’t start/,
    },
    {
      fault: 'a second preview server runs',
      breaks: () =>
        stage.run({ ...stage.manifest, ports: { ...stage.manifest.ports, preview: 20009 } }, 'keep'),
      repairs: () => stage.run(stage.manifest),
      finds: ['single_preview'],
      fix: /Run tagyard apply, which removes what isn’t wanted/,
    },
    {
      fault: 'the vhosts are gone',
      breaks: () => stage.setVhosts(false),
      repairs: () => stage.setVhosts(true),
      finds: [
        ...(['processing_health', 'preview_health', 'preview_url', 'underscore_paths'] as const),
        ...([
          'loader',
          'boot',
          'script',
          'cors_allowed',
          'cors_refused',
          'certificate',
          'client_address',
        ] as const),
      ],
      subject: 'tags.shop.localhost',
      fix: /Point tags\.shop\.localhost to the host/,
    },
    {
      fault: 'the loader token isn’t in the stores',
      breaks: () => stage.edge.kv.LOADER_TOKEN_MAP.delete(stage.manifest.loaderToken),
      repairs: () => stage.publish(stage.manifest),
      finds: ['loader', 'boot'],
      subject: 'shop.tagyard.localhost',
      fix: /Run tagyard plan: the route or the documents/,
    },
    {
      fault: 'a domain is enabled in the manifest and disabled in the stores',
      breaks: () =>
        stage.publish({ ...stage.manifest, features: { ...stage.manifest.features, multi_domain: false } }),
      repairs: () => stage.publish(stage.manifest),
      finds: ['boot', 'script', 'cors_allowed'],
      subject: 'other.localhost',
      fix: /tagyard apply repairs them/,
    },
    {
      fault: 'the route isn’t there',
      breaks: () => stage.edge.setRoutes([]),
      repairs: () => stage.edge.setRoutes([`${stage.manifest.hostnames.edge}/*`]),
      finds: [
        ...(['processing_health', 'preview_url', 'underscore_paths', 'loader', 'boot', 'script'] as const),
        ...(['cors_allowed', 'cors_refused', 'client_address'] as const),
      ],
      subject: 'shop.tagyard.localhost',
      fix: /Run tagyard plan: the route/,
    },
    {
      fault: 'the query string is taken away',
      breaks: passing((one) => (atEdge(one) ? { url: new URL(one.url.pathname, one.url) } : undefined)),
      finds: ['query_forwarded'],
      fix: /Something before the tag server changes requests/,
    },
    {
      fault: 'the cookie header is taken away',
      breaks: passing((one) => (atEdge(one) ? { strip: ['cookie'] } : undefined)),
      finds: ['cookies_forwarded'],
      fix: /Something before the tag server changes requests/,
    },
    {
      fault: 'something else takes /_/*',
      breaks: passing((one) =>
        atEdge(one) && one.url.pathname.startsWith('/_/') ? { answer: { status: 404 } } : undefined,
      ),
      finds: ['underscore_paths', 'cookies_forwarded', 'client_address'],
      fix: /no other route takes \/_\/\*/,
    },
    {
      fault: 'CORS headers are taken away',
      breaks: passing((one) =>
        atEdge(one) ? { answered: ({ 'access-control-allow-origin': _, ...rest }) => rest } : undefined,
      ),
      finds: ['cors_allowed'],
      subject: 'shop.localhost',
      fix: /nothing before the edge removes CORS headers/,
    },
    {
      fault: 'CORS headers allow every origin',
      breaks: passing((one) =>
        atEdge(one)
          ? {
              answered: (headers) => ({
                ...headers,
                'access-control-allow-origin': one.headers.origin ?? '*',
                'access-control-allow-credentials': 'true',
              }),
            }
          : undefined,
      ),
      finds: ['cors_refused'],
      subject: 'shop.tagyard.localhost',
      fix: /Remove what answers for the edge or adds CORS headers/,
    },
    {
      fault: 'the stores name another web tag, which the vendor doesn’t know',
      breaks: () => {
        const [first, ...rest] = stage.manifest.domains;
        if (first === undefined) throw new Error('the manifest has no domains');
        return stage.publish({
          ...stage.manifest,
          domains: [{ ...first, webTagId: 'GTM-UNKNOWN1' }, ...rest],
        });
      },
      repairs: () => stage.publish(stage.manifest),
      finds: ['boot', 'script'],
      subject: 'shop.localhost',
      fix: /Run tagyard plan.*publish that web container, or correct its id/s,
    },
    {
      fault: 'the edge doesn’t trust the proxy of a custom domain',
      breaks: passing(({ headers }) =>
        'x-tagyard-hop-secret' in headers ? { strip: ['x-tagyard-hop-secret'] } : undefined,
      ),
      finds: ['loader'],
      subject: 'tags.shop.localhost',
      fix: /HOP_SECRET is the same/,
    },
    {
      fault: 'the edge hostname redirects to another host',
      breaks: passing((one) =>
        atEdge(one) && one.url.pathname.startsWith('/l/')
          ? { answer: { status: 302, headers: { location: 'http://elsewhere.tagyard.localhost/secret' } } }
          : undefined,
      ),
      finds: ['loader'],
      subject: 'shop.tagyard.localhost',
      fix: /Run tagyard plan/,
    },
  ];

  test.each(rows)('$fault', async ({ breaks, repairs, finds, subject, fix }) => {
    await breaks();
    try {
      stage.asked.length = 0;
      // The edge caches for a moment what it reads from its stores.
      const report = await eventually(async () => {
        const found = await stage.verify();
        expect(names(found)).toEqual(finds);
        return found;
      }, PATIENT);
      expect(report.status).toBe('failed');
      const about = failing(report).filter((check) => subject === undefined || check.subject === subject);
      expect(about.map((check) => check.fix).join('\n')).toMatch(fix);
      for (const check of failing(report)) expect(check.fix, check.name).not.toBe('');
      expect(stage.asked.filter((url) => url.includes('elsewhere'))).toEqual([]);
    } finally {
      stage.fault = () => undefined;
      await repairs?.();
    }
    await eventually(async () => expect(names(await stage.verify())).toEqual([]), PATIENT);
  });
});

describe('checks of the host report', () => {
  const inDays = (days: number) => new Date(Date.now() + (days + 0.5) * 86_400_000).toISOString();
  const changedName = (host: HostReport, name: string, change: Partial<NameAnswer>): HostReport => ({
    ...host,
    names: host.names.map((one) => (one.name === name ? { ...one, ...change } : one)),
  });
  const custom = 'tags.shop.localhost';
  const edge = 'shop.tagyard.localhost';

  test.each<
    [what: string, change: (host: HostReport) => HostReport, name: Check['name'], detail: RegExp, fix: RegExp]
  >([
    [
      'a custom domain that leads elsewhere',
      (host) => changedName(host, custom, { addresses: ['192.0.2.9'] }),
      'dns',
      /^tags\.shop\.localhost resolves to 192\.0\.2\.9; it must be 127\.0\.0\.1 or a CNAME to shop-origin/,
      /DNS provider set an A record to 127\.0\.0\.1, or a CNAME to shop-origin\.tagyard\.localhost/,
    ],
    [
      'a custom domain with a wrong address beside the right one',
      (host) => changedName(host, custom, { addresses: ['127.0.0.1', '2001:db8::1'] }),
      'dns',
      /resolves to 2001:db8::1; it must be/,
      /set an A record/,
    ],
    [
      'a name that doesn’t exist',
      (host) =>
        changedName(host, 'shop-origin.tagyard.localhost', { addresses: [], problem: 'no such name' }),
      'dns',
      /doesn’t resolve \(no such name\); it must be 127\.0\.0\.1/,
      /Run tagyard plan and tagyard apply/,
    ],
    [
      'a custom domain that doesn’t exist while the host’s addresses aren’t known',
      (host) => changedName(host, custom, { addresses: [], expected: [], problem: 'no such name' }),
      'dns',
      /doesn’t resolve \(no such name\); it must be a CNAME to shop-origin/,
      /DNS provider set a CNAME to shop-origin\.tagyard\.localhost/,
    ],
    [
      'an origin hostname that doesn’t exist while the host’s addresses aren’t known',
      (host) =>
        changedName(host, 'shop-origin.tagyard.localhost', {
          addresses: [],
          expected: [],
          problem: 'no such name',
        }),
      'dns',
      /doesn’t resolve \(no such name\); it must be an address of the host/,
      /Run tagyard plan and tagyard apply/,
    ],
    [
      'an edge hostname that is not proxied',
      (host) => changedName(host, edge, { addresses: ['100::'] }),
      'dns',
      /resolves to 100::; it must be an address of the edge/,
      /isn’t proxied by the edge/,
    ],
    [
      'a certificate that is valid for 13 more days',
      (host) => certificateOf(host, custom, { validTo: inDays(13), validFrom: inDays(-77) }),
      'certificate',
      /is valid until \d{4}-\d\d-\d\d only, 13 days/,
      /^For a certificate of tags\.shop\.localhost, put it into .* or set ACME_DIRECTORY_URL .* and set tls to acme/,
    ],
    [
      'a certificate that has ended',
      (host) => certificateOf(host, custom, { validTo: inDays(-3) }),
      'certificate',
      /ended on/,
      /^For a certificate/,
    ],
    [
      'a certificate for another name',
      (host) => certificateOf(host, custom, { covers: false }),
      'certificate',
      /is for another name/,
      /^For a certificate/,
    ],
    [
      'no certificate',
      (host) => certificateOf(host, custom, { validTo: null, problem: 'the handshake was refused' }),
      'certificate',
      /presents no certificate: the handshake was refused/,
      /^For a certificate/,
    ],
    [
      'an address that a visitor only claimed',
      (host) => arrivalOf(host, { as: '192.0.2.1' }),
      'client_address',
      /from 127\.0\.0\.1 arrives as 192\.0\.2\.1/,
      /HOP_SECRET is the same/,
    ],
    [
      'a visit that didn’t arrive',
      (host) => arrivalOf(host, { as: null, problem: 'status 530' }),
      'client_address',
      /didn’t arrive: status 530/,
      /takes the same path/,
    ],
    [
      'a preview URL without TLS',
      (host) => ({ ...host, site: { ...host.site, preview: 'http://shop-preview.tagyard.localhost' } }),
      'preview_url',
      /PREVIEW_SERVER_URL is http:/,
      /takes https only/,
    ],
    [
      'a path that belongs to the preview server',
      (host) => ({ ...host, site: { ...host.site, proxyPaths: ['/data', '/data/gtm'] } }),
      'path_prefix',
      /would hand \/data\/gtm to its preview server/,
      /Rename the paths/,
    ],
    [
      'a preview URL with a prefix that belongs to the preview server',
      (host) => ({ ...host, site: { ...host.site, preview: `${host.site.preview}/gtm/x` } }),
      'path_prefix',
      /would hand \/gtm\/x to/,
      /Rename the paths/,
    ],
    [
      'a Workers route before the worker',
      (host) => ({ ...host, edgePath: { problem: 'the route shop/g/* leads past', fix: 'Delete it.' } }),
      'edge_routes',
      /shop\/g\/\* leads past/,
      /Delete it/,
    ],
    [
      'a custom domain of another worker',
      (host) => ({
        ...host,
        edgePath: { problem: 'the custom domain shop leads to w', fix: 'Delete it.', unread: null },
      }),
      'edge_routes',
      /the custom domain shop leads to w/,
      /Delete it/,
    ],
    [
      'preview servers that can’t be counted',
      (host) => ({ ...host, previews: { count: null, problem: 'the engine doesn’t answer' } }),
      'single_preview',
      /couldn’t be counted: the engine/,
      /Check that the site’s host reaches what runs its containers/,
    ],
  ])('find a problem ($2): %s', async (_what, change, name, detail, fix) => {
    const report = await stage.verify(change(await stage.report()));
    const found = failing(report).filter((check) => check.name === name);
    expect(found).toHaveLength(1);
    expect(found[0]?.detail).toMatch(detail);
    expect(found[0]?.fix).toMatch(fix);
  });

  test('find a configuration that can’t be used', async () => {
    const host = await stage.report({ ...stage.manifest, config: new Secret('aWQ9R1RNLVg=') });
    const [found] = failing(await stage.verify(host));
    expect(found).toMatchObject({
      name: 'container_config',
      fix: expect.stringMatching(/Copy the configuration again/),
    });
    expect(found?.detail).toContain('it has no env, auth');
    expect(JSON.stringify(await stage.verify())).not.toContain('s3cret-auth-t0ken');
  });

  test('count what the host’s token can’t read as not checked', async () => {
    const host = await stage.report();
    const unread = 'not checked: Google’s tag gateway';
    const report = await stage.verify({ ...host, edgePath: { problem: null, fix: null, unread } });
    expect(report.checks.filter(({ name }) => name === 'edge_routes')).toMatchObject([
      { status: 'skipped', detail: unread },
    ]);
  });

  test('give one finding for a missing host report, and are skipped if they need it', async () => {
    const report = await stage.verify(null);
    expect(failing(report)).toMatchObject([
      { name: 'host_report', detail: expect.stringContaining('the provisioner didn’t answer') },
    ]);
    expect(report.checks.filter(({ status }) => status === 'skipped').map(({ name }) => name)).toEqual([
      'container_config',
      'edge_routes',
      'single_preview',
      'cookies_forwarded',
      'dns',
      'certificate',
      'client_address',
      'cookie_lifetime',
    ]);
  });

  function certificateOf(host: HostReport, name: string, change: object): HostReport {
    const certificates = host.certificates.map((one) => (one.name === name ? { ...one, ...change } : one));
    return { ...host, certificates };
  }
  function arrivalOf(host: HostReport, change: object): HostReport {
    return {
      ...host,
      arrivals: host.arrivals.map((one) => (one.name === edge ? { ...one, ...change } : one)),
    };
  }
});

describe('the verification worker', () => {
  afterEach(() => {
    stage.fault = () => undefined;
  });

  test('ends in time where no server answers, and reports the site as unreachable', async () => {
    const host = await stage.report();
    stage.fault = () => ({ hold: true });
    const report = await stage.verify(host, { budget: 1_500 });
    expect(report.status).toBe('unreachable');
    expect(failing(report).find(({ name }) => name === 'loader')?.detail).toContain('no answer in time');
  });

  test.each([
    ['http://127.0.0.1:1', 'an address'],
    ['http://[::1]:1', 'an IPv6 address'],
    ['http://2130706433', 'an address as a number'],
    ['http://localhost:1', 'this machine'],
    ['http://169.254.169.254', 'the metadata service'],
  ])('sends no request to %s (%s)', async (url) => {
    const host = await stage.report();
    stage.asked.length = 0;
    const report = await stage.verify({ ...host, site: { ...host.site, edge: url, customDomains: [url] } });
    expect(names(report)).toEqual(expect.arrayContaining(['processing_health', 'loader', 'boot']));
    expect(failing(report).find(({ name }) => name === 'loader')?.detail).toContain(
      'not one of the site’s own hosts',
    );
    const pages = stage.manifest.domains.map(({ domain }) => `https://${domain}/`);
    const others = stage.asked.filter((asked) => !asked.includes('.tagyard.localhost'));
    expect(others.filter((asked) => !pages.includes(asked))).toEqual([]);
  });

  test('sends each request once: 12 for the first domain, three for each further domain, five for each further host', async () => {
    const host = await stage.report();
    stage.asked.length = 0;
    await stage.verify(host);
    const own = [stage.manifest.hostnames.edge, stage.manifest.hostnames.preview, 'tags.shop.localhost'];
    const visits = stage.asked.filter((url) => own.includes(new URL(url).hostname));
    expect(visits.length).toBe(12 + 3 + 5);
  });

  const ask = async (path: string, init: RequestInit & { headers?: Record<string, string> } = {}) => {
    const { verificationUrl } = stage.edge;
    const answer = await fetch(new URL(path, verificationUrl ?? ''), { method: 'POST', ...init });
    return { status: answer.status, body: (await answer.json()) as { code?: string; requestId?: string } }; // a problem
  };
  const secret = { 'x-secret': VERIFICATION_SECRET };

  test.each<[string, RequestInit & { headers?: Record<string, string> }, number, string]>([
    ['/verify', {}, 401, 'wrong_secret'],
    ['/verify', { headers: { 'x-secret': '' } }, 401, 'wrong_secret'],
    ['/verify', { headers: { 'x-secret': `${VERIFICATION_SECRET}x` } }, 401, 'wrong_secret'],
    ['/elsewhere', {}, 401, 'wrong_secret'],
    ['/elsewhere', { headers: secret }, 404, 'not_found'],
    ['/verify', { method: 'GET', headers: secret }, 405, 'method_not_allowed'],
    ['/verify', { headers: secret, body: '{' }, 400, 'malformed_request'],
    ['/verify', { headers: secret, body: '{"site":{}}' }, 400, 'malformed_request'],
    ['/verify', { headers: secret, body: ' '.repeat(300_000) }, 413, 'body_too_large'],
  ])('%s %j → %i %s', async (path, init, status, code) => {
    stage.asked.length = 0;
    expect(await ask(path, init)).toMatchObject({ status, body: { code, requestId: expect.any(String) } });
    expect(stage.asked).toEqual([]);
  });
});
