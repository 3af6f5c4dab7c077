import { afterAll, beforeAll, expect, test } from 'vitest';
import { creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
beforeAll(async () => {
  world = await World.open();
  client = await world.client();
});
afterAll(() => world.close());

const base64 = (text: string) => Buffer.from(text).toString('base64');
const many = Array.from({ length: 21 }, (_, index) => `d${index}.example`);
const tags = (domains: string[]) => Object.fromEntries(domains.map((domain) => [domain, 'GTM-ABC1234']));

test.each<[string, object, string[]]>([
  ['a member that isn’t known', { colour: 'red' }, ['colour']],
  ['no name', { name: undefined }, ['name']],
  ['a name of two lines', { name: 'a\nb' }, ['name']],
  ['a client that is no UUID', { clientId: 'acme' }, ['clientId']],
  ['no domain', { domains: [], webTagIds: {} }, ['domains']],
  ['21 domains', { domains: many, webTagIds: tags(many) }, ['domains']],
  ['a public suffix', { domains: ['co.uk'], webTagIds: tags(['co.uk']) }, ['domains.0']],
  ['a private suffix', { domains: ['github.io'], webTagIds: tags(['github.io']) }, ['domains.0']],
  ['an address', { domains: ['192.0.2.1'], webTagIds: tags(['192.0.2.1']) }, ['domains.0']],
  ['an address in disguise', { domains: ['0xc0000201'], webTagIds: tags(['0xc0000201']) }, ['domains.0']],
  ['a single label', { domains: ['intranet'], webTagIds: tags(['intranet']) }, ['domains.0']],
  ['a URL with a port', { domains: ['https://a.example:8443/'], webTagIds: {} }, ['domains.0']],
  ['a URL with a login', { domains: ['https://me@a.example/'], webTagIds: {} }, ['domains.0']],
  ['a URL of another scheme', { domains: ['ftp://a.example/'], webTagIds: {} }, ['domains.0']],
  ['line breaks in a domain', { domains: ['a.example\n;x'], webTagIds: {} }, ['domains.0']],
  [
    'a domain twice',
    { domains: ['a.example', 'A.EXAMPLE.'], webTagIds: { 'a.example': 'GTM-ABC1234' } },
    ['domains.1'],
  ],
  [
    'a domain without web tag id',
    { domains: ['a.example', 'b.example'], webTagIds: tags(['a.example']) },
    ['webTagIds.b.example'],
  ],
  ['a web tag id too many', { webTagIds: tags(['acme.example', 'b.example']) }, ['webTagIds.b.example']],
  [
    'a web tag id of another kind',
    { webTagIds: { 'acme.example': 'UA-1234-1' } },
    ['webTagIds.acme.example'],
  ],
  ['an unknown flag', { features: { magic: true } }, ['features.magic']],
  ['a flag that is no boolean', { features: { multi_domain: 'yes' } }, ['features.multi_domain']],
  ['an unknown module', { modules: { magic: {} } }, ['modules.magic']],
  [
    'a loader that is off',
    { modules: { custom_loader: { enabled: false } } },
    ['modules.custom_loader.enabled'],
  ],
  ['a disabled proxy', { modules: { server_proxy: { enabled: false } } }, ['modules.server_proxy.enabled']],
  ['a reserved path', { modules: { server_proxy: { paths: ['/l/x'] } } }, ['modules.server_proxy.paths.0']],
  ['half a surrogate pair', { name: 'Acme \ud800' }, ['name']],
  ['a right-to-left override', { name: 'Acme \u202epohS' }, ['name']],
  ['a zero-width space', { name: 'Ac\u200bme' }, ['name']],
  ['only spaces', { name: '\u00a0 ' }, ['name']],
  [
    'a zero-width space in a domain',
    { domains: ['ac\u200bme.example'], webTagIds: tags(['acme.example']) },
    ['domains.0'],
  ],
  ['two faults at once', { name: '', domains: ['intranet'] }, ['name', 'domains.0']],
])('a creation with %s is refused with the path of the fault', async (_what, extra, paths) => {
  const answer = await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(client, 'acme.example', extra),
  });
  expect([answer.status, answer.body.code]).toEqual([400, 'invalid_request']);
  // Some names violate two rules at once.
  const named = new Set(answer.body.errors.map(({ path }: { path: string }) => path));
  expect([...named]).toEqual(paths);
  expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
});

test.each([
  ['text that is not base64', 'id=GTM-A&env=1&auth=x', 'is not base64 text'],
  ['bytes that are not UTF-8', Buffer.from([0xff, 0xfe, 0xfd]).toString('base64'), 'is not base64 text'],
  ['no id', base64('env=1&auth=x'), 'has no id'],
  ['no auth', base64('id=GTM-A&env=1'), 'has no auth'],
  ['an empty env', base64('id=GTM-A&env=&auth=x'), 'has an empty env'],
  ['two auths', base64('id=GTM-A&env=1&auth=x&auth=y'), 'has more than one auth'],
])(
  'a configuration with %s is refused without being quoted (docs/facts.md, Container configuration)',
  async (_what, containerConfigB64, message) => {
    const answer = await world.call('POST', '/server-containers', {
      as: 'owner',
      body: creation(client, 'acme.example', { containerConfigB64 }),
    });
    expect([answer.status, answer.body.code]).toEqual([422, 'invalid_container_config']);
    expect(answer.body.errors).toEqual([{ path: 'containerConfigB64', message }]);
    expect(answer.body.detail).toContain('copy it whole from Tag Manager');
    expect(JSON.stringify(answer.body)).not.toContain(containerConfigB64);
  },
);

test('domains are accepted as people write them', async () => {
  const answer = await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(client, 'unused', {
      domains: ['Bücher.Example.', 'SHOP.example'],
      webTagIds: {
        'bücher.example': 'GTM-AAAA',
        'xn--shop.example': 'GTM-BBBB',
        'Shop.Example.': 'GTM-BBBB',
      },
    }),
  });
  expect(answer.body.errors).toEqual([
    { path: 'webTagIds.xn--shop.example', message: 'is not one of the domains' },
  ]);
  const fine = await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(client, 'unused', {
      domains: ['Bücher.Example.', 'SHOP.example'],
      webTagIds: { 'bücher.example': 'GTM-AAAA', 'Shop.Example.': 'GTM-BBBB' },
    }),
  });
  expect(fine.body.domains).toMatchObject([
    { domain: 'xn--bcher-kva.example', webTagId: 'GTM-AAAA' },
    { domain: 'shop.example', webTagId: 'GTM-BBBB' },
  ]);
});

test('domains are taken out of URLs, and web tag ids are read without spaces and in upper case', async () => {
  const long = `https://long.example/?${'x'.repeat(1_000)}`;
  const domains = ['https://www.x.example/shop', ' http://Größe.example?a=b#c ', 'y.example/', long];
  const answer = await world.call('POST', '/server-containers?dryRun=1', {
    as: 'owner',
    body: creation(client, 'unused', {
      domains,
      webTagIds: Object.fromEntries(domains.map((domain) => [domain, ' gtm-abc1234\n'])),
    }),
  });
  expect([answer.status, answer.body.errors]).toEqual([200, undefined]);
  const hosts = ['www.x.example', 'xn--gre-6ka8i.example', 'y.example', 'long.example'];
  const { to } = answer.body.plan.changes.find(({ path }: { path: string }) => path === 'domains');
  expect(to).toMatchObject(hosts.map((domain) => ({ domain, webTagId: 'GTM-ABC1234' })));
});

test.each([
  ['G-ABC1234567', /measurement id of GA4.*web container.*GTM-/],
  ['g-abc1234567', /measurement id of GA4/],
  ['GT-ABC1234', /id of a Google tag.*GTM-/],
  ['AW-1234567890', /id of Google Ads.*GTM-/],
  ['DC-1234567', /id of Floodlight.*GTM-/],
  ['UA-1234-1', /id of Universal Analytics.*GTM-/],
  ['GTM-', /like GTM-ABC1234/],
  ['ABC1234', /like GTM-ABC1234/],
])('the web tag id %s is refused with what it is and what to give', async (webTagId, message) => {
  const answer = await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(client, 'acme.example', { webTagIds: { 'acme.example': webTagId } }),
  });
  expect(answer.body.errors).toEqual([
    { path: 'webTagIds.acme.example', message: expect.stringMatching(message) },
  ]);
});

test.each([
  ['text that is not JSON', '{', 'application/json', 400, 'invalid_request'],
  ['another content type', 'a=b', 'application/x-www-form-urlencoded', 415, 'unsupported_media_type'],
  ['a body of 200 KB', `"${'x'.repeat(200_000)}"`, 'application/json', 413, 'body_too_large'],
] as const)('the API refuses %s', async (_what, payload, contentType, status, code) => {
  const token = await world.issuer.token('owner');
  const response = await world.management?.app.inject({
    method: 'POST',
    url: '/server-containers',
    headers: { authorization: `Bearer ${token}`, 'content-type': contentType },
    payload,
  });
  expect([response?.statusCode, response?.json().code]).toEqual([status, code]);
});

test.each([
  ['a safe request id', 'abc-123._X', true],
  ['a request id with other characters', 'a%0ab c', false],
  ['a request id that is too long', 'x'.repeat(65), false],
])('%s is kept: $2', async (_what, id, kept) => {
  const answer = await world.call('GET', '/nowhere', { headers: { 'x-request-id': id } });
  expect(answer.body).toMatchObject({
    status: 404,
    code: 'not_found',
    type: 'urn:tagyard:problem:not_found',
  });
  expect(answer.headers['x-request-id'] === id).toBe(kept);
  expect(answer.body.requestId).toBe(answer.headers['x-request-id']);
});
