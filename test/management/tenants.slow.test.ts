import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { formatManifest, parseManifest } from '../../sites/manifest/load.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import { eventually } from '../support/eventually.ts';
import { creation, World } from '../support/management/world.ts';

let world: World;
/** Two clients that don't trust each other, with one owner each. */
let clients: Record<'ada' | 'bob', string>;
beforeEach(async () => {
  world = await World.open({ logLevel: 'silent' });
  clients = { ada: await newClient('ada'), bob: await newClient('bob') };
});
afterEach(() => world.close());

async function newClient(owner: string): Promise<string> {
  const body = { name: `Client of ${owner}`, members: [{ subject: owner, role: 'owner' }] };
  return (await world.call('POST', '/clients', { as: 'root', body })).body.id;
}

type Tenant = 'ada' | 'bob';
const create = (as: Tenant, domain: string, extra: object = {}) =>
  world.call('POST', '/server-containers', {
    as,
    body: creation(clients[as], domain, { name: domain, ...extra }),
  });
const add = (as: Tenant, id: string, domain: string) =>
  world.call('POST', `/server-containers/${id}/domains`, { as, body: { domain, webTagId: 'GTM-AAAA' } });
const addCustom = (as: Tenant, id: string, domain: string) =>
  world.call('POST', `/server-containers/${id}/custom-domains`, { as, body: { domain } });

/** Creates a container and waits until it is active. */
async function made(as: Tenant, domain: string, extra: object = {}): Promise<string> {
  const { status, body } = await create(as, domain, extra);
  expect([status, body.code]).toEqual([202, undefined]);
  await shows(as, body.id, { status: 'active' });
  return body.id;
}

const shows = (as: Tenant, id: string, expected: object) =>
  eventually(async () => {
    expect((await world.call('GET', `/server-containers/${id}`, { as })).body).toMatchObject(expected);
  });

describe('a registrable domain', () => {
  test('belongs, with all names under it, to the client that had it first', async () => {
    await made('ada', 'acme.example');
    const theirs = await made('bob', 'bob.example');
    for (const refused of [
      await create('bob', 'shop.acme.example'),
      await add('bob', theirs, 'deep.shop.acme.example'),
      await add('bob', theirs, 'acme.example'),
      await addCustom('bob', theirs, 'data.acme.example'),
    ]) {
      expect([refused.status, refused.body.code]).toEqual([409, 'domain_in_use']);
    }
    expect(await world.leased()).toBe(2);
    // The client's own containers get any name under the domain.
    await made('ada', 'shop.acme.example');
  });

  test('also belongs to a client that at first has only a name below it', async () => {
    await made('ada', 'shop.acme.example');
    expect((await create('bob', 'acme.example')).body.code).toBe('domain_in_use');
    expect((await create('bob', 'other.acme.example')).body.code).toBe('domain_in_use');
  });

  test('is a name under a private suffix, not the suffix itself', async () => {
    await made('ada', 'acme.github.io');
    expect((await create('bob', 'www.acme.github.io')).body.code).toBe('domain_in_use');
    await made('bob', 'bob.github.io');
  });

  test('doesn’t include a name that merely ends with the same letters', async () => {
    await made('ada', 'acme.example');
    await made('bob', 'not-acme.example');
  });

  test('is free again when the last name under it is gone', async () => {
    const first = await made('ada', 'acme.example');
    await add('ada', first, 'ada.example');
    await world.call('DELETE', `/server-containers/${first}/domains?domain=acme.example`, { as: 'ada' });
    const theirs = await made('bob', 'shop.acme.example');
    expect((await add('ada', first, 'acme.example')).body.code).toBe('domain_in_use');
    await world.call('DELETE', `/server-containers/${theirs}`, { as: 'bob' });
    await shows('bob', theirs, { status: 'removed' });
    expect((await add('ada', first, 'acme.example')).status).toBe(200);
  });

  test('that two clients had before the upgrade stays with both; the older container’s client gets new names', async () => {
    const older = await made('ada', 'acme.example');
    const younger = await made('bob', 'bob.example');
    // The state that an older release recorded.
    await world.owner
      .insertInto('domain_claims')
      .values({ domain: 'shop.acme.example', container_id: younger })
      .execute();
    await commitAs(younger, (manifest) => ({
      ...manifest,
      domains: [
        ...manifest.domains,
        { domain: 'shop.acme.example', webTagId: 'GTM-AAAA', token: 'ct_0123456789abcdef' },
      ],
    }));
    await shows('bob', younger, {
      statusReason: null,
      domains: [{ domain: 'bob.example' }, { domain: 'shop.acme.example' }],
    });
    expect((await add('bob', younger, 'shop.acme.example')).status).toBe(200);
    expect((await add('bob', younger, 'new.acme.example')).body.code).toBe('domain_in_use');
    expect((await add('ada', older, 'new.acme.example')).status).toBe(200);
  });

  test('stays with its client if an operator’s edit adds it to another client’s site; the rest of the edit applies', async () => {
    await made('ada', 'acme.example');
    const theirs = await made('bob', 'bob.example');
    await commitAs(theirs, (manifest) => ({
      ...manifest,
      name: 'Edited',
      domains: [
        ...manifest.domains,
        { domain: 'shop.acme.example', webTagId: 'GTM-AAAA', token: 'ct_0123456789abcdef' },
      ],
    }));
    await shows('bob', theirs, { name: 'Edited', status: 'active', statusReason: 'domain_in_use' });
  });
});

describe('names of the installation', () => {
  test.each([
    'example.net',
    'shop.example.net',
    'a.edge.example.net',
    'platform.example',
    'www.platform.example',
  ])('%s is refused to a client, as a container’s first domain and as a further one', async (name) => {
    expect(await create('bob', name)).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', errors: [{ path: 'domains.0' }] },
    });
    const theirs = await made('bob', 'bob.example');
    for (const refused of [await add('bob', theirs, name), await addCustom('bob', theirs, name)])
      expect([refused.status, refused.body.errors[0].path]).toEqual([400, 'domain']);
  });

  test('a site never gets a reserved label as its hostname', async () => {
    const { body } = await create('bob', 'bob.example', { name: 'Login' });
    expect(body.hostnames.edge).toMatch(/^login-[a-z2-9]{5}\.edge\.example\.net$/);
  });

  test('a container keeps a name that blocking lists block; its hostname comes from the domain', async () => {
    const request = () =>
      world.call('POST', '/server-containers', {
        as: 'bob',
        body: creation(clients.bob, 'pots.example', { name: 'Promo' }),
        headers: { 'idempotency-key': 'promo' },
      });
    const { status, body } = await request();
    const warnings = [
      { host: 'pots.edge.example.net', detail: expect.stringMatching(/“promo\.”.*made from “pots”/) },
    ];
    expect([status, body.name, body.siteId]).toEqual([202, 'Promo', 'pots']);
    expect(body.warnings).toEqual(warnings);
    // A repeated request gets the same answer.
    expect(await request()).toMatchObject({ status: 202, body: { id: body.id, warnings } });
    await shows('bob', body.id, { status: 'active', name: 'Promo', warnings: [] });
    // The id made from the domain is taken now.
    const next = await create('bob', 'shop.pots.example', { name: 'Ads' });
    expect([next.status, next.body.name]).toEqual([202, 'Ads']);
    expect(next.body.siteId).toMatch(/^pots-[a-z2-9]{5}$/);
  });

  test('a blocked name under the client’s own domain is only warned of', async () => {
    const id = await made('bob', 'kettles.example');
    expect(await addCustom('bob', id, 'sgtm.kettles.example')).toMatchObject({
      status: 200,
      body: {
        customDomains: ['sgtm.kettles.example'],
        warnings: [
          {
            host: 'sgtm.kettles.example',
            detail: 'EasyPrivacy blocks requests to hosts that begin with “sgtm.”',
          },
        ],
      },
    });
  });
});

describe('the image', () => {
  const image = (name: string) => `${name}@sha256:${'c'.repeat(64)}`;
  const set = (as: string, id: string, body: object) =>
    world.call('PATCH', `/server-containers/${id}`, { as, body });

  test('is shown; only operators may change it, and only to one from the allowed repositories', async () => {
    const id = await made('ada', 'acme.example');
    const { body: before } = await world.call('GET', `/server-containers/${id}`, { as: 'ada' });
    expect(before.image).toBe(world.settings.image);
    const allowed = image('registry.example/gtm');
    expect(await set('ada', id, { image: allowed })).toMatchObject({
      status: 403,
      body: { code: 'forbidden' },
    });
    expect((await set('root', id, { image: image('evil.example/gtm') })).body.code).toBe('image_not_allowed');
    expect(await set('root', id, { image: allowed })).toMatchObject({
      status: 200,
      body: { image: allowed },
    });
    // The same image as before doesn't count as a change.
    expect((await set('ada', id, { name: 'Other', image: allowed })).body).toMatchObject({ name: 'Other' });
    // Without a membership, an operator may change nothing else.
    expect((await set('root', id, { image: image('registry.example/gtm'), name: 'Mine' })).status).toBe(404);
  });
});

describe('what a client reads', () => {
  /** Every GET of the API's document, with the ids of both clients in its parameters and query. */
  async function reads(own: { id: string; clientId: string }, others: { id: string; clientId: string }) {
    const { body: document } = await world.call('GET', '/openapi.json');
    const paths = Object.entries<Record<string, unknown>>(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => ({ path, method: method.toUpperCase() })),
    );
    return paths.flatMap(({ path, method }) =>
      [own, others].flatMap(({ id, clientId }) => {
        const url = path
          .replace('/clients/{id}', `/clients/${clientId}`)
          .replace('{id}', id)
          .replace('{subject}', 'ada');
        return method === 'GET' ? [url, `${url}?limit=100`, `${url}?clientId=${clientId}`] : [];
      }),
    );
  }

  test('never names anything of another client, whatever the provisioner says', async () => {
    const hers = await made('ada', 'acme.example', { name: 'Secret Project' });
    await addCustom('ada', hers, 'data.acme.example');
    const theirs = await made('bob', 'bob.example', { name: 'Bob' });
    const { body: hersShown } = await world.call('GET', `/server-containers/${hers}`, { as: 'ada' });
    const { siteId: site } = (await world.call('GET', `/server-containers/${theirs}`, { as: 'bob' })).body;
    const secrets = [
      hers,
      clients.ada,
      hersShown.siteId,
      hersShown.name,
      hersShown.loaderToken,
      hersShown.hostnames.edge,
      hersShown.hostnames.origin,
      'acme.example',
      hersShown.domains[0].containerToken,
    ];
    const said = [
      `hostname data.acme.example is held by the site ${hersShown.siteId}, which claimed it first`,
      `nginx: /sites.3/${hersShown.siteId}.conf:7 for ${hersShown.hostnames.origin}`,
      `token ${hersShown.loaderToken} of ${hers} in ${site}`,
    ].join('; ');
    // The provisioner's messages reach a site that runs, one that fails, and one that is refused.
    world.provisioner.sites.set(site, { reason: 'NameTaken', message: said });
    await shows('bob', theirs, { statusReason: 'host_refused' });
    const { statusDetail } = (await world.call('GET', `/server-containers/${theirs}`, { as: 'bob' })).body;
    expect(statusDetail).toContain(`of (another site) in ${site}`);
    world.provisioner.fails = said;
    const failing = (await create('bob', 'second.example', { name: 'Second' })).body;
    await shows('bob', failing.id, { status: 'failed', statusReason: 'provisioning_failed' });
    world.provisioner.fails = null;
    world.provisioner.refuse = { status: 409, code: 'name_taken', detail: said };
    const refused = await create('bob', 'third.example', { name: 'Third' });
    expect([refused.status, refused.body.code]).toEqual([502, 'provisioning_failed']);
    world.provisioner.refuse = null;

    const answers = [refused];
    const own = { id: theirs, clientId: clients.bob };
    for (const url of await reads(own, { id: hers, clientId: clients.ada })) {
      answers.push(await world.call('GET', url, { as: 'bob' }));
    }
    for (const { id } of [failing, { id: refused.body.container }]) {
      for (const path of ['', '/events', '/verifications'])
        answers.push(await world.call('GET', `/server-containers/${id}${path}`, { as: 'bob' }));
    }
    // Refusals don't name anything of the other client, either.
    for (const call of [
      create('bob', 'acme.example', { name: 'Secret Project' }),
      add('bob', theirs, 'shop.acme.example'),
      addCustom('bob', theirs, 'data.acme.example'),
      add('bob', hers, 'bob.example'),
      world.call('PATCH', `/server-containers/${hers}`, { as: 'bob', body: { name: 'Mine' } }),
      world.call('DELETE', `/server-containers/${hers}`, { as: 'bob' }),
    ]) {
      const { status, body } = await call;
      expect([404, 409, 400]).toContain(status);
      expect(JSON.stringify(body)).not.toMatch(new RegExp(`${hersShown.siteId}|${clients.ada}|lt_|ct_`));
    }
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(8);
    for (const { body } of answers) {
      for (const secret of secrets) expect(JSON.stringify(body)).not.toContain(secret);
    }
  });
});

/** Commits an edit of a container's manifest, as an operator. */
async function commitAs(id: string, edit: (manifest: Manifest) => Manifest): Promise<void> {
  const { site_id } = await world.owner
    .selectFrom('containers')
    .select('site_id')
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  await world.repo.commit({
    site: site_id,
    subject: `Edit ${site_id}`,
    author: { name: 'Olga', email: 'olga@example.test' },
    trailers: { 'Request-Id': randomUUID() },
    edit: (text) => {
      const parsed = parseManifest(text ?? '', `${site_id}.yaml`);
      if (!parsed.ok) throw new Error(`${site_id} can’t be read`);
      return formatManifest(edit(parsed.manifest));
    },
  });
}
