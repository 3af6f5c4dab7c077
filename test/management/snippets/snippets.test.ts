import { execFileSync } from 'node:child_process';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createContext, runInContext } from 'node:vm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { isQuotableCookie } from '../../../management/snippets/forwarder.ts';
import { renderSnippets } from '../../../management/snippets/index.ts';
import { PRODUCTS } from '../../../sites/requests/products.ts';

const TOKEN = `ft_${'T0k-en_'.repeat(6)}x`;
const VALUES = {
  edge: 'https://acme-shop.example.net',
  path: '/m3trics1',
  domain: 'acme.example',
  token: TOKEN,
  cookies: ['_fpid', '_ga', '_ga_*', 'odd.name'],
};

test('the snippet of nginx says how its server speaks HTTP/2', () => {
  expect(renderSnippets(VALUES).nginx).toContain('http2 on');
});

describe('values', () => {
  test.each([
    ['edge', 'https://acme-shop.example.net/'],
    ['edge', 'https://acme-shop.example.net; return 200'],
    ['edge', 'ftp://acme-shop.example.net'],
    ['edge', 'https://127.0.0.1'],
    ['path', '/m3trics1/'],
    ['path', '/m3 { }'],
    ['domain', 'acme.example"'],
    ['domain', 'acme.example\n}'],
    ['token', 'ft_"quoted"quoted"quoted'],
    ['token', `ft_${'x'.repeat(30)}\n`],
    ['cookies', ['_ga', 'a"b']],
    ['cookies', ["a'b"]],
    ['cookies', ['a$b']],
    ['cookies', ['a|b']],
    ['cookies', ['a`b']],
    ['cookies', ['a b']],
    ['cookies', ['*']],
    ['cookies', ['a*b']],
    ['cookies', []],
  ])('that are invalid or can’t be quoted are refused: %s %j', (name, value) => {
    expect(() => renderSnippets({ ...VALUES, [name]: value })).toThrow();
  });

  test.each([
    ['_ga_*', true],
    ['li_fat_id', true],
    ['a%b', false],
    ['a#', false],
  ])('with the cookie %s can be quoted: %s', (name, quotable) => {
    expect(isQuotableCookie(name)).toBe(quotable);
  });
});

describe.each(PRODUCTS)('%s', (product) => {
  const snippet = renderSnippets(VALUES)[product];

  test('names all that a forwarder needs', () => {
    for (const part of [
      'acme-shop.example.net',
      '/m3trics1/',
      TOKEN,
      'x-tagyard-forwarder-token',
      'x-tagyard-visitor',
      'x-tagyard-host',
      'x-tagyard-scheme',
      'x-tagyard-country',
      'x-tagyard-region',
      'odd[.]name',
    ]) {
      expect(snippet).toContain(part);
    }
    expect(snippet).toMatch(/authorization/i);
    expect(snippet).toMatch(/35/);
    expect(snippet.split('\n').at(-1)).toBe('');
  });
});

const COOKIES =
  'session=s3cret; _ga=GA1.1; x_ga=s3cret; _fpid=p; _ga_AAA=1; _gaxy=s3cret; oddXname=s3cret; odd.name=3; z=s3cret';
const PASSED = ['_fpid=p', '_ga=GA1.1', '_ga_AAA=1', 'odd.name=3'];
const pairs = (cookie: string | undefined) =>
  (cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '')
    .sort();

/** The functions for Vercel, Netlify and Next.js run here, in Node: each is a module without imports. */
describe('the function for', () => {
  const seen: (IncomingMessage & { body?: string })[] = [];
  const edge = createServer(async (request, response) => {
    seen.push(Object.assign(request, { body: await text(request) }));
    response.setHeader('set-cookie', ['a=1', 'b=2']).writeHead(302, { location: '/elsewhere' }).end('moved');
  });
  let port = 0;
  beforeAll(async () => {
    await new Promise<void>((resolve) => edge.listen(0, '127.0.0.1', resolve));
    ({ port } = edge.address() as AddressInfo); // it listens on TCP
  });
  afterAll(async () => {
    edge.closeAllConnections();
    await new Promise((resolve) => edge.close(resolve));
  });
  beforeEach(() => {
    seen.length = 0;
  });

  /** The module, with the test's server in the place of the edge. */
  async function load(
    product: 'vercel' | 'netlify' | 'nextjs',
    target = `http://127.0.0.1:${port}`,
    visitorHeader = 'x-forwarded-for',
  ) {
    const code = renderSnippets(VALUES)
      [product].replace('https://acme-shop.example.net', target)
      .replace("VISITOR_HEADER = ''", `VISITOR_HEADER = '${visitorHeader}'`);
    return await import(`data:text/javascript,${encodeURIComponent(code)}`);
  }

  type Call = (module: Awaited<ReturnType<typeof load>>, request: Request) => Promise<Response>;
  const visitors = { 'x-real-ip': '198.51.100.7', 'x-forwarded-for': '192.0.2.1, 198.51.100.7' };
  const CALLS: [product: 'vercel' | 'netlify' | 'nextjs', call: Call][] = [
    ['vercel', (module, request) => module.default(request)],
    ['netlify', (module, request) => module.default(request, { ip: '198.51.100.7' })],
    ['nextjs', (module, request) => module[request.method](request)],
  ];

  test.each(CALLS)(
    '%s forwards a request, without credentials and foreign cookies',
    async (product, call) => {
      const request = new Request('https://www.acme.example/m3trics1/g/collect?v=2&x=a%20b', {
        method: 'POST',
        body: 'en=page_view',
        headers: {
          ...visitors,
          host: 'www.acme.example',
          cookie: COOKIES,
          authorization: 'Basic s3cret',
          'x-tagyard-visitor': '192.0.2.66',
          'x-tagyard-country': 'KP',
          'x-tagyard-region': '01',
          'accept-encoding': 'gzip, br',
        },
      });
      const answer = await call(await load(product), request);
      expect([answer.status, answer.headers.get('location'), answer.headers.getSetCookie()]).toEqual([
        302,
        '/elsewhere',
        ['a=1', 'b=2'],
      ]);
      const [arrived] = seen;
      expect(arrived).toMatchObject({
        method: 'POST',
        url: '/m3trics1/g/collect?v=2&x=a%20b',
        body: 'en=page_view',
        headers: {
          host: `127.0.0.1:${port}`,
          'x-tagyard-forwarder-token': TOKEN,
          'x-tagyard-visitor': '198.51.100.7',
          'x-tagyard-host': 'www.acme.example',
          'x-tagyard-scheme': 'https',
        },
      });
      expect(pairs(arrived?.headers.cookie)).toEqual(PASSED);
      expect(JSON.stringify(arrived?.rawHeaders)).not.toContain('s3cret');
    },
  );

  test.each([
    ['vercel', { 'x-vercel-ip-country': 'US', 'x-vercel-ip-country-region': 'CA' }, 'US', 'CA'],
    ['netlify', {}, 'DE', 'BE'],
    ['nextjs', {}, undefined, undefined],
  ] as const)(
    '%s states the place that its platform knows, and no other',
    async (product, known, country, region) => {
      const headers = { ...visitors, ...known, 'x-tagyard-country': 'KP', 'x-tagyard-region': '01' };
      const request = new Request('https://www.acme.example/m3trics1/boot', { headers });
      const module = await load(product);
      const geo = { country: { code: 'DE' }, subdivision: { code: 'BE' } };
      await (product === 'nextjs'
        ? module.GET(request)
        : module.default(request, { ip: '198.51.100.7', geo }));
      expect(seen[0]?.headers['x-tagyard-country']).toBe(country);
      expect(seen[0]?.headers['x-tagyard-region']).toBe(region);
    },
  );

  test.each([
    ['', undefined],
    ['x-real-ip', '198.51.100.7'],
    ['x-forwarded-for', '198.51.100.7'],
    ['x-client-ip', undefined],
  ])('nextjs with the visitor’s header %j states the visitor %s', async (header, expected) => {
    const headers = { ...visitors, 'x-tagyard-visitor': '192.0.2.66' };
    const module = await load('nextjs', undefined, header);
    await module.GET(new Request('https://www.acme.example/m3trics1/boot', { headers }));
    expect(seen[0]?.headers['x-tagyard-visitor']).toBe(expected);
  });

  test.each(CALLS)('%s answers 502 if the edge can’t be reached', async (product, call) => {
    const request = new Request('https://www.acme.example/m3trics1/l/x.js', { headers: visitors });
    expect((await call(await load(product, 'http://127.0.0.1:1'), request)).status).toBe(502);
  });

  test('each platform is called for the path only', async () => {
    expect((await load('vercel')).config).toEqual({ matcher: '/m3trics1/:path*' });
    expect((await load('netlify')).config).toEqual({ path: '/m3trics1/*' });
    // With `cacheComponents`, Next.js refuses to build a file that has segment options.
    expect(Object.keys(await load('nextjs')).sort()).toEqual(['GET', 'HEAD', 'OPTIONS', 'POST']);
    expect(renderSnippets(VALUES).nextjs).toContain('app/m3trics1/[...path]/route.js');
  });
});

/** CloudFormation's own tags stay text. */
const template = () => parse(renderSnippets(VALUES).cloudfront, { logLevel: 'silent' });

test('CloudFront’s template has an origin, a behavior without a cache, and a function that it runs', () => {
  const { TagyardForwarder, Distribution } = template().Resources;
  const { Origins, CacheBehaviors } = Distribution.Properties.DistributionConfig;
  expect(Origins[0]).toMatchObject({
    Id: CacheBehaviors[0].TargetOriginId,
    DomainName: 'acme-shop.example.net',
    CustomOriginConfig: { OriginProtocolPolicy: 'https-only', OriginReadTimeout: 35 },
    OriginCustomHeaders: [{ HeaderName: 'x-tagyard-forwarder-token', HeaderValue: TOKEN }],
  });
  expect(CacheBehaviors[0]).toMatchObject({ PathPattern: '/m3trics1/*', ViewerProtocolPolicy: 'https-only' });
  const { FunctionConfig, FunctionCode } = TagyardForwarder.Properties;
  expect(FunctionConfig.Runtime).toBe('cloudfront-js-2.0');

  const cookies = Object.fromEntries(
    COOKIES.split('; ')
      .map((pair) => pair.split('='))
      .map(([name, value]) => [name, { value }]),
  );
  const event = {
    viewer: { ip: '198.51.100.7' },
    request: {
      method: 'GET',
      uri: '/m3trics1/boot',
      headers: {
        host: { value: 'www.acme.example' },
        authorization: { value: 'Basic s3cret' },
        'x-tagyard-country': { value: 'KP' },
        'x-tagyard-region': { value: '01' },
      },
      cookies,
    },
  };
  const sandbox = createContext({ event });
  const request = runInContext(`${FunctionCode}\nhandler(event)`, sandbox);
  expect(Object.keys(request.cookies).sort()).toEqual(['_fpid', '_ga', '_ga_AAA', 'odd.name']);
  expect(request.headers).toEqual({
    host: { value: 'www.acme.example' },
    'x-tagyard-visitor': { value: '198.51.100.7' },
    'x-tagyard-host': { value: 'www.acme.example' },
    'x-tagyard-scheme': { value: 'https' },
  });
});

/** The value without all matches, as Perl's engine removes them; the products' own engines follow Perl's. */
function replaced(regex: string, value: string): string {
  const script = 'my ($regex, $value) = @ARGV; $value =~ s/$regex//g; print $value;';
  return execFileSync('perl', ['-e', script, regex, value], { encoding: 'utf8' });
}

test('Akamai’s rule sends the listed cookies only, if there are any', () => {
  const { variables, rules } = JSON.parse(renderSnippets(VALUES).akamai);
  const [{ behaviors, criteria, children }] = rules;
  const options = (name: string) =>
    behaviors
      .filter((one: { name: string }) => one.name === name)
      .map((one: { options: object }) => one.options);
  expect(criteria[0].options.values).toEqual(['/m3trics1/*']);
  expect(options('caching')).toEqual([{ behavior: 'NO_STORE' }]);
  const [{ regex, variableName, globalSubstitution }] = options('setVariable');
  expect([variableName, globalSubstitution]).toEqual([variables[0].name, true]);
  expect(pairs(replaced(regex, COOKIES))).toEqual(PASSED);
  expect(replaced(regex, 'session=s3cret')).toBe('');
  expect(options('modifyOutgoingRequestHeader')).toContainEqual({
    action: 'DELETE',
    standardDeleteHeaderName: 'OTHER',
    customHeaderName: 'Cookie',
  });
  expect(children[0].behaviors[0].options.headerValue).toBe(`{{user.${variableName}}}`);
});

test('Fastly’s expression sends the listed cookies only', () => {
  const [, regex = ''] = /regsuball\(req\.http\.Cookie, "([^"]*)"/.exec(renderSnippets(VALUES).fastly) ?? [];
  expect(pairs(replaced(regex, `; ${COOKIES}`))).toEqual(PASSED);
});
