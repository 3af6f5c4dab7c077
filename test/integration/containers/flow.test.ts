import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { execa } from 'execa';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildShop } from '../../../sites/local/demo/shop/app.ts';
import { launchChromium } from '../../support/browser/chromium.ts';
import { describeWith, testWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { type Instance, startInstance, temporaryHome } from '../../support/instance.ts';
import { api, at, ok } from '../../support/management/api.ts';
import { type Operator, operator } from '../../support/operator.ts';
import { traces } from '../../support/traces.ts';

const AUTH = 'flow-auth-s3cret-0123456789';
const CONFIG = Buffer.from(`id=GTM-FLOWSRV&env=3&auth=${AUTH}`).toString('base64');
const VISITOR = '203.0.113.7';

/** The main job from start to end, with the drivers that `env` selects. */
function story(env: NodeJS.ProcessEnv, drivers: { proxy: string; containers: 'docker' | 'process' }): void {
  const home = temporaryHome();
  let instance: Instance;
  let call: ReturnType<typeof api>;
  let person: Operator;
  let id: string;
  let site: string;
  let edgeHost: string;

  beforeAll(async () => {
    instance = await startInstance(home.path, env);
    call = api(instance.run);
    person = await operator(instance.run.sitesRepo);
  });
  afterAll(async () => {
    await instance?.stop();
    person?.[Symbol.dispose]();
    home[Symbol.dispose]();
  });

  test('runs on the drivers that it reports', () => {
    expect(instance.run.drivers).toMatchObject(drivers);
  });

  test('makes a container through the API, and it becomes active by itself', async () => {
    const answer = await ok(
      call.management.POST('/server-containers', {
        body: {
          clientId: instance.run.demo.clientId,
          name: 'Flow Store',
          domains: ['store.localhost'],
          webTagIds: { 'store.localhost': 'GTM-FLOW123' },
          containerConfigB64: CONFIG,
        },
      }),
    );
    expect(answer).toMatchObject({ status: 202, body: { name: 'Flow Store', status: 'provisioning' } });
    ({ id, siteId: site } = answer.body);
    edgeHost = answer.body.hostnames.edge;
    expect(answer.headers.get('location')).toContain(id);
    await call.reaches(id, 'active');
  });

  test('makes one commit by the caller: the manifest, with the configuration in encrypted form only', async () => {
    const entries = await person.log(
      site,
      '%an|%(trailers:key=Site,valueonly,separator=)|%(trailers:key=Actor,valueonly,separator=)',
    );
    expect(entries).toEqual([`demo-owner|${site}|demo-owner`]);
    const requests = await person.log(site, '%(trailers:key=Request-Id,valueonly,separator=)');
    expect(requests).toEqual([expect.stringMatching(/^[A-Za-z0-9._-]{8,}$/)]);
    const text = await person.read(site);
    expect(text).toContain('BEGIN AGE ENCRYPTED FILE');
    expect(text).not.toContain(AUTH);
    expect(text).not.toContain(CONFIG);
  });

  test('serves loader, boot and script at the edge hostname', async () => {
    const { body: container } = await ok(call.management.GET('/server-containers/{id}', at(id)));
    // Each document appears in KV after a delay of its own.
    const served = async (path: string) => expect((await call.edge(edgeHost, 'GET', path)).status).toBe(200);
    await eventually(() => served(`/l/${container.loaderToken}.js`));
    await eventually(() => served(`/c/${container.domains[0]?.containerToken}.js`));
    const loader = await call.edge(edgeHost, 'GET', `/l/${container.loaderToken}.js`);
    expect(loader).toMatchObject({
      status: 200,
      headers: { 'content-type': 'application/javascript; charset=utf-8' },
    });
    expect(loader.body).toContain(edgeHost);
    const boot = await call.edge(edgeHost, 'POST', '/boot', {
      loader: container.loaderToken,
      url: 'http://store.localhost/',
    });
    expect(boot).toMatchObject({
      status: 200,
      body: {
        container: { webTagId: 'GTM-FLOW123' },
        site: { id: site, domain: 'store.localhost' },
        restoreCookies: [],
      },
    });
    const script = await call.edge(edgeHost, 'GET', `/c/${container.domains[0]?.containerToken}.js`);
    expect(script).toMatchObject({ status: 200 });
    expect(script.body).toContain('GTM-FLOW123');
    const mark = await call.edge(edgeHost, 'POST', '/mark-session-detection', {
      loader: container.loaderToken,
      session: { id: boot.body.session.id },
      signals: { adblock: false },
    });
    expect(mark).toMatchObject({ status: 202, body: { forwarded: true } });
  });

  test('forwards an event with the visitor’s address to the processing container, and debug requests to the preview one', async () => {
    await ok(
      call.management.PATCH('/server-containers/{id}', {
        ...at(id),
        body: {
          modules: { server_proxy: { paths: ['/tagyard-demo/events'] } },
        },
      }),
    );
    const events = await eventually(async () => {
      const sent = await call.edge(edgeHost, 'POST', '/g/collect?v=2&tid=G-FLOW&en=purchase', 'en=x', {
        'x-forwarded-for': VISITOR,
        'content-type': 'text/plain',
      });
      expect(sent.status).toBeLessThan(300);
      const read = await call.edge(edgeHost, 'GET', '/tagyard-demo/events');
      expect(read.status).toBe(200);
      expect(JSON.stringify(read.body)).toContain('en=purchase');
      return JSON.stringify(read.body);
    });
    // The test is the visitor, at 127.0.0.1; the address that it claims for itself is ignored.
    expect(events).not.toContain(VISITOR);
    expect(events).toContain('127.0.0.1');
    const debug = await call.edge(edgeHost, 'GET', '/gtm/debug?id=GTM-FLOWSRV&gtm_auth=x&gtm_preview=env-3');
    expect(debug).toMatchObject({ status: 200 });
    expect(debug.headers['content-type']).toContain('text/html');
  });

  testWith('chromium', 'loads the page’s tags in a real browser, and the page’s events arrive', async () => {
    const { body: container } = await ok(call.management.GET('/server-containers/{id}', at(id)));
    const edgeUrl = `http://${edgeHost}:${new URL(instance.run.edge.url).port}`;
    const shop = buildShop({ site: () => ({ snippet: container.snippet, edgeUrl }) });
    await shop.listen({ port: 0, host: '127.0.0.1' });
    await using browser = await launchChromium();
    const page = await browser.newPage();
    const shows = (name: string, text: RegExp) =>
      eventually(async () => expect(await page.locator(`#${name}`).textContent()).toMatch(text));

    await page.goto(`http://store.localhost:${new URL(shop.listeningOrigin).port}/`);
    await shows('gtm', /^ran for GTM-FLOW123, from the edge/);
    await shows('session', /\(new\)$/);
    await shows('profile', /\(new\)$/);
    const [cookie] = await browser.cookies();
    expect(cookie).toMatchObject({
      name: '_fpid',
      domain: '.store.localhost',
      secure: true,
      sameSite: 'Lax',
    });
    await page.getByRole('navigation').getByText('Marsh jug').click();
    await page.getByRole('button', { name: 'Add to basket' }).click();
    await shows('event', /^add_to_cart: 2\d\d from /);
    await shows('profile', /returning/);
    await page.getByRole('button', { name: 'Visit as a bot' }).click();
    await shows('outcome', /^As Googlebot: the edge answered 200, and keeps nothing of the visit\.$/);
    await page.getByRole('button', { name: 'Lose the cookies' }).click();
    await shows('profile', /\(new\)$/);
    await page.getByRole('button', { name: 'Refuse consent' }).click();
    await shows('consent', /^denied$/);
    await eventually(async () => expect(await browser.cookies()).toMatchObject([{ name: 'shop_consent' }]));
    await page.screenshot({ path: `test/screenshots/shop-${drivers.proxy}.png`, fullPage: true });
    const events = await call.edge(edgeHost, 'GET', '/tagyard-demo/events');
    expect(JSON.stringify(events.body)).toContain('en=add_to_cart');
    await shop.close();
  });

  test('adds a custom domain whose loader names that domain, and an operator reverts it', async () => {
    const { body: container } = await ok(call.management.GET('/server-containers/{id}', at(id)));
    const added = await call.provisioner('POST', '/custom-domain?wait=30', {
      site,
      domain: 'metrics.store.localhost',
    });
    expect(added).toMatchObject({ status: 200, body: { operation: { status: 'succeeded' } } });
    const path = `/l/${container.loaderToken}.js`;
    const loader = await call.proxy('metrics.store.localhost', 'GET', path);
    expect(loader).toMatchObject({ status: 200 });
    expect(loader.body).toContain('//metrics.store.localhost:');
    // A visitor with an address of its own, through all hops: proxy to edge, edge to proxy, proxy to container.
    const visitor = new Agent({ localAddress: '127.9.9.9' });
    const sent = await request(`${instance.run.proxy.url}/g/collect?v=2&tid=G-FLOW&en=from_afar`, {
      method: 'POST',
      headers: {
        host: `metrics.store.localhost:${new URL(instance.run.proxy.url).port}`,
        'x-forwarded-for': VISITOR,
      },
      dispatcher: visitor,
    });
    await sent.body.dump();
    const { body: seen } = await call.edge(edgeHost, 'GET', '/tagyard-demo/events');
    const event = seen.events.find(({ query }: { query: string }) => query.includes('en=from_afar'));
    expect(event).toMatchObject({ address: '127.9.9.9' });
    expect(JSON.stringify(event)).not.toContain(VISITOR);
    await visitor.close();
    await person.revert(added.body.revision);
    await eventually(() => expect(call.proxy('metrics.store.localhost', 'GET', path)).rejects.toThrow());
    await eventually(async () =>
      expect((await ok(call.management.GET('/server-containers/{id}', at(id)))).body.customDomains).toEqual(
        [],
      ),
    );
  });

  test('removes a custom domain on request, and reports no change if there is none', async () => {
    const body = { site, domain: 'tags.store.localhost' };
    expect(await call.provisioner('POST', '/custom-domain?wait=30', body)).toMatchObject({ status: 200 });
    expect(await call.provisioner('DELETE', '/custom-domain?wait=30', body)).toMatchObject({ status: 200 });
    expect(await call.provisioner('DELETE', '/custom-domain', body)).toMatchObject({
      status: 200,
      body: { changed: false },
    });
  });

  test('switches a feature off at the edge when its commit is reverted, and the API shows it', async () => {
    const { body: container } = await ok(call.management.GET('/server-containers/{id}', at(id)));
    const flag = async () => {
      const request = { loader: container.loaderToken, url: 'http://store.localhost/' };
      return (await call.edge(edgeHost, 'POST', '/boot', request)).body.features?.cookie_restoration;
    };
    await ok(
      call.management.PATCH('/server-containers/{id}', {
        ...at(id),
        body: { features: { cookie_restoration: true } },
      }),
    );
    await eventually(async () => expect(await flag()).toBe(true));
    const [revision = ''] = await person.log(site, '%H');
    await person.revert(revision);
    await eventually(async () => expect(await flag()).toBe(false));
    await eventually(async () =>
      expect(
        (await ok(call.management.GET('/server-containers/{id}', at(id)))).body.features.cookie_restoration,
      ).toBe(false),
    );
  });

  test('keeps a site whose manifest was broken by hand, says where it is broken, and serves the others', async () => {
    await person.edit(site, (text) => text.replace('ports:', 'prots:'));
    const status = await eventually(async () => {
      const { body } = await call.provisioner('GET', `/sites/${site}`);
      expect(body.reason).toBe('InvalidManifest');
      return body;
    });
    expect(status.message).toMatch(new RegExp(`${site}\\.yaml:\\d+: prots`));
    expect((await call.edge(edgeHost, 'GET', '/healthy')).status).toBe(200);
    const { body: demo } = await call.provisioner('GET', '/sites/demo-shop');
    expect(demo.applied).toBe(status.desired);
    expect(demo.ready).toBe(true);
    const [revision = ''] = await person.log(site, '%H');
    await person.revert(revision);
    await eventually(async () =>
      expect((await call.provisioner('GET', `/sites/${site}`)).body.reason).toBe('Ready'),
    );
  });

  test('shows nothing to change in the plan, and the site in the status', async () => {
    const run = (...args: string[]) =>
      execa('npm', ['run', '--silent', 'tagyard', '--', ...args], {
        env: { TAGYARD_HOME: home.path },
        reject: false,
      });
    expect(await run('plan')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('nothing to change'),
    });
    expect(await run('status')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(new RegExp(`^${site} +serving +Ready`, 'm')),
    });
  });

  test('removes the site, restores it by a plain revert, removes it again, and nothing remains', async () => {
    const { routes, ...present } = await traces(home.path, site, drivers.containers);
    // One route serves all sites of a new instance.
    expect(routes).toEqual([]);
    for (const found of Object.values(present)) expect(found).not.toEqual([]);
    expect(await ok(call.management.DELETE('/server-containers/{id}', at(id)))).toMatchObject({
      status: 202,
    });
    await call.reaches(id, 'removed');
    const [removal = ''] = await person.log(site, '%H');
    await person.revert(removal);
    await call.reaches(id, 'active');
    // The embedded KV shows a write late, as Cloudflare's does.
    await eventually(async () => expect((await call.edge(edgeHost, 'GET', '/healthy')).status).toBe(200));
    const again = await call.provisioner('POST', '/deprovision?wait=60', { site });
    expect(again).toMatchObject({ status: 200, body: { operation: { status: 'succeeded' } } });
    await call.reaches(id, 'removed');
    expect(await traces(home.path, site, drivers.containers)).toEqual({
      dns: [],
      routes: [],
      kv: [],
      proxy: [],
      containers: [],
    });
    await eventually(async () =>
      expect((await call.edge(edgeHost, 'GET', '/healthy')).status).toBeGreaterThanOrEqual(400),
    );
  });

  test('has written each secret only to the files that need it', async () => {
    const { infraSecret, hopSecret, verificationSecret, cloudflareToken } = JSON.parse(
      readFileSync(join(home.path, 'instance.json'), 'utf8'),
    );
    const files = readdirSync(home.path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(home.path, join(entry.parentPath, entry.name)));
    // The edge's stores create and delete files during the search.
    const read = (name: string) =>
      existsSync(join(home.path, name)) ? [{ name, bytes: readFileSync(join(home.path, name)) }] : [];
    const there = files.flatMap(read);
    const holding = (secret: string) =>
      there
        .filter(({ bytes }) => bytes.includes(secret))
        .map(({ name }) => name)
        .sort();
    expect(holding(AUTH)).toEqual([]);
    expect(holding(CONFIG)).toEqual([]);
    expect(holding(instance.run.demo.token)).toEqual(['run.json']);
    expect(holding(infraSecret)).toEqual(['instance.json', 'run.json']);
    expect(holding(verificationSecret)).toEqual(['instance.json']);
    expect(holding(cloudflareToken)).toEqual(['instance.json']);
    // nginx compares the hop secret itself; its configuration is readable by its owner only.
    const hop = holding(hopSecret).filter((name) => name !== 'instance.json');
    expect(hop.every((name) => /^provisioner\/proxy\/.*\.conf$/.test(name))).toBe(true);
    expect(hop.every((name) => (statSync(join(home.path, name)).mode & 0o077) === 0)).toBe(true);
    // Git compresses its objects, so the search above misses their content; `git log` shows it.
    const { stdout: history } = await execa('git', ['-C', instance.run.sitesRepo, 'log', '--patch', '--all']);
    for (const secret of [AUTH, CONFIG, infraSecret, hopSecret, verificationSecret, cloudflareToken])
      expect(history).not.toContain(secret);
  });
}

describe('the main job on embedded defaults', () => {
  story(
    { TAGYARD_PROXY: 'embedded', TAGYARD_CONTAINERS: 'process' },
    { proxy: 'embedded', containers: 'process' },
  );
});

describeWith(['nginx', 'docker'], 'the main job on nginx and Docker', () => {
  story({ TAGYARD_PROXY: 'nginx', TAGYARD_CONTAINERS: 'docker' }, { proxy: 'nginx', containers: 'docker' });
});
