import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { parseManifest } from '../../sites/manifest/load.ts';
import { decryptSecret, unbound } from '../../sites/manifest/secrets.ts';
import { eventually } from '../support/eventually.ts';
import { AUTH_SECRET, CONFIG, creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
beforeAll(async () => {
  world = await World.open();
});
afterAll(() => world.close());
beforeEach(async () => {
  client = await world.client();
});

let count = 0;
const freshDomain = () => `shop${++count}.example`;

async function create(extra: object = {}) {
  const domain = freshDomain();
  const answer = await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(client, domain, extra),
  });
  expect(answer.status, JSON.stringify(answer.body)).toBe(202);
  return { domain, ...answer };
}

const read = async (id: string) =>
  (await world.call('GET', `/server-containers/${id}`, { as: 'owner' })).body;

function becomes(id: string, status: string) {
  return eventually(async () => {
    const container = await read(id);
    expect(container.status).toBe(status);
    return container;
  });
}

describe('a creation', () => {
  test('answers 202 with the container, commits its manifest in the caller’s name, and becomes active', async () => {
    const { body, headers, domain } = await create({ name: 'Größe & Co' });
    expect(headers.location).toBe(`/server-containers/${body.id}`);
    expect(body).toMatchObject({
      siteId: 'groesse-co',
      clientId: client,
      name: 'Größe & Co',
      hostnames: {
        edge: 'groesse-co.edge.example.net',
        origin: 'groesse-co-origin.origin.example.net',
        preview: 'groesse-co-preview.origin.example.net',
      },
      domains: [{ domain, webTagId: 'GTM-ABC1234', active: true }],
      customDomains: [],
      warnings: [],
    });
    expect(body.snippet).toContain(`https://groesse-co.edge.example.net/l/${body.loaderToken}.js`);

    const [commit] = await world.repo.history('groesse-co');
    expect(commit).toMatchObject({
      author: 'owner',
      trailers: { Site: 'groesse-co', Actor: 'owner', 'Request-Id': headers['x-request-id'] },
    });
    expect(commit?.revision).toBe(body.revision);
    expect((await becomes(body.id, 'active')).statusReason).toBeNull();
    expect(world.provisioner.calls).toContainEqual(
      expect.objectContaining({ path: '/provision', requestId: headers['x-request-id'] }),
    );
  });

  test('keeps the configuration out of everything but the manifest, where it is encrypted', async () => {
    const { body } = await create();
    const text = (await world.file(body.siteId)) ?? '';
    const parsed = parseManifest(text, `${body.siteId}.yaml`);
    if (!parsed.ok) throw new Error('the manifest is not valid');
    const { secret } = unbound(await decryptSecret(world.identity, parsed.manifest.containerConfig));
    expect(secret.reveal()).toBe(CONFIG);
    await becomes(body.id, 'active');
    const tables = [
      await world.owner.selectFrom('containers').selectAll().execute(),
      await world.owner.selectFrom('operations').selectAll().execute(),
      await world.owner.selectFrom('container_events').selectAll().execute(),
      await world.owner.selectFrom('idempotency_keys').selectAll().execute(),
    ];
    for (const place of [JSON.stringify(tables), text, world.logs.join('')]) {
      expect(place).not.toContain(AUTH_SECRET);
      expect(place).not.toContain(CONFIG);
    }
  });

  test('gives every container a unique site id, and no site the hostname of another', async () => {
    const first = await create({ name: 'Twin' });
    const second = await create({ name: 'Twin' });
    const origin = await create({ name: 'Twin origin' });
    expect(first.body.siteId).toBe('twin');
    expect(second.body.siteId).toMatch(/^twin-[a-z0-9]{5}$/);
    expect(origin.body.siteId).toMatch(/^twin-origin-[a-z0-9]{5}$/);
  });

  test('serves further domains only while multi_domain is on', async () => {
    const [a, b] = [freshDomain(), freshDomain()];
    const { body } = await world.call('POST', '/server-containers', {
      as: 'owner',
      body: creation(client, a, { domains: [a, b], webTagIds: { [a]: 'GTM-AAAA', [b]: 'GTM-BBBB' } }),
    });
    const active = (container: { domains: { active: boolean }[] }) =>
      container.domains.map((one) => one.active);
    expect(active(body)).toEqual([true, false]);
    const { body: changed } = await world.call('PATCH', `/server-containers/${body.id}`, {
      as: 'admin',
      body: { features: { multi_domain: true } },
    });
    expect(active(changed)).toEqual([true, true]);
  });

  test('refuses a domain that another site holds, and leases nothing', async () => {
    const { domain } = await create();
    const leased = await world.leased();
    const { status, body } = await world.call('POST', '/server-containers', {
      as: 'owner',
      body: creation(client, domain.toUpperCase()),
    });
    expect({ status, code: body.code }).toEqual({ status: 409, code: 'domain_in_use' });
    expect(body.errors).toEqual([{ path: 'domains.0', message: 'is held by another site or client' }]);
    expect(await world.leased()).toBe(leased);
  });

  test.each(['edge.example.net', 'victim.edge.example.net', 'victim-origin.origin.example.net'])(
    'refuses %s, which lies in a zone of the installation’s own hostnames',
    async (domain) => {
      const [made, other] = [freshDomain(), await create()];
      const refusal = (path: string) => ({
        status: 400,
        body: {
          code: 'invalid_request',
          errors: [{ path, message: expect.stringContaining('own hostnames') }],
        },
      });
      const body = creation(client, made, {
        domains: [made, domain],
        webTagIds: { [made]: 'GTM-AAAA', [domain]: 'GTM-BBBB' },
      });
      expect(await world.call('POST', '/server-containers', { as: 'owner', body })).toMatchObject(
        refusal('domains.1'),
      );
      const at = `/server-containers/${other.body.id}`;
      const page = { domain, webTagId: 'GTM-ABCD' };
      expect(await world.call('POST', `${at}/domains`, { as: 'owner', body: page })).toMatchObject(
        refusal('domain'),
      );
      expect(
        await world.call('POST', `${at}/custom-domains`, { as: 'owner', body: { domain } }),
      ).toMatchObject(refusal('domain'));
    },
  );

  test('refuses the hostname of another site, also one that an operator chose in another zone', async () => {
    const [held, own] = [await create(), await create()];
    await becomes(held.body.id, 'active');
    const dir = await world.clone();
    const file = `${held.body.siteId}.yaml`;
    const path = (await world.git(dir, 'ls-files', `*${file}`)).trim();
    const edge = `tags.${own.domain}`;
    const text = (await world.file(held.body.siteId)) ?? '';
    await writeFile(join(dir, path), text.replace(held.body.hostnames.edge, edge));
    await world.git(dir, 'commit', '--quiet', '--all', '--message', 'Give the edge another name');
    await world.git(dir, 'push', '--quiet');
    await eventually(async () => expect((await read(held.body.id)).hostnames.edge).toBe(edge));
    const taken = { status: 409, body: { code: 'domain_in_use' } };
    const at = `/server-containers/${own.body.id}`;
    const page = { domain: edge, webTagId: 'GTM-ABCD' };
    expect(await world.call('POST', `${at}/domains`, { as: 'owner', body: page })).toMatchObject(taken);
    expect(
      await world.call('POST', `${at}/custom-domains`, { as: 'owner', body: { domain: edge } }),
    ).toMatchObject(taken);
    expect(
      await world.call('POST', '/server-containers', { as: 'owner', body: creation(client, edge) }),
    ).toMatchObject(taken);
  });
});

describe('an Idempotency-Key', () => {
  const send = (body: unknown, key: string) =>
    world.call('POST', '/server-containers', { as: 'owner', body, headers: { 'idempotency-key': key } });

  test('repeats the first answer, and refuses another body', async () => {
    const body = creation(client, freshDomain());
    const first = await send(body, 'key-a');
    const again = await send(body, 'key-a');
    expect(again.status).toBe(202);
    expect(again.body).toEqual(first.body);
    const other = await send({ ...body, name: 'Other' }, 'key-a');
    expect({ status: other.status, code: other.body.code }).toEqual({
      status: 422,
      code: 'idempotency_key_reused',
    });
  });

  test('answers 409 while the first request is still being answered', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    world.provisioner.gate = promise;
    const before = world.provisioner.calls.length;
    const body = creation(client, freshDomain());
    const first = send(body, 'key-b');
    try {
      await eventually(() => expect(world.provisioner.calls.length).toBeGreaterThan(before));
      const early = await send(body, 'key-b');
      expect({ status: early.status, code: early.body.code }).toEqual({
        status: 409,
        code: 'request_in_progress',
      });
    } finally {
      resolve();
    }
    const { body: made } = await first;
    expect((await send(body, 'key-b')).body).toEqual(made);
  });
});

describe('a change', () => {
  test('is a commit in the caller’s name, and the API shows it at once', async () => {
    const { body, domain } = await create();
    await becomes(body.id, 'active');
    const at = `/server-containers/${body.id}`;
    const more = freshDomain();
    const steps: [Parameters<World['call']>[0], string, unknown, object][] = [
      ['PATCH', at, { name: 'New name' }, { name: 'New name' }],
      ['PATCH', at, { features: { cookie_restoration: true } }, { features: { cookie_restoration: true } }],
      [
        'PATCH',
        at,
        { modules: { server_proxy: { paths: ['/data'] } } },
        { modules: { server_proxy: { enabled: true, paths: ['/data'] } } },
      ],
      [
        'POST',
        `${at}/domains`,
        { domain: more, webTagId: 'GTM-MORE' },
        { domains: [{ domain }, { domain: more, webTagId: 'GTM-MORE', active: false }] },
      ],
      [
        'POST',
        `${at}/custom-domains`,
        { domain: `Metrics.${domain}` },
        { customDomains: [`metrics.${domain}`] },
      ],
      ['DELETE', `${at}/custom-domains?domain=metrics.${domain}`, undefined, { customDomains: [] }],
      ['DELETE', `${at}/domains?domain=${more}`, undefined, { domains: [{ domain }] }],
    ];
    for (const [method, url, sent, expected] of steps) {
      const answer = await world.call(method, url, { as: 'admin', body: sent });
      expect(answer.status, `${method} ${url}: ${JSON.stringify(answer.body)}`).toBe(200);
      expect(answer.body).toMatchObject(expected);
      expect(await read(body.id)).toMatchObject(expected);
      const [commit] = await world.repo.history(body.siteId, 1);
      expect(commit?.trailers).toMatchObject({
        Actor: 'admin',
        'Request-Id': answer.headers['x-request-id'],
      });
      expect(answer.body.revision).toBe(commit?.revision);
    }
  });

  test('sets the image for an operator; a change of something else keeps it', async () => {
    const { body } = await create();
    await becomes(body.id, 'active');
    const image = `registry.example/gtm@sha256:${'c'.repeat(64)}`;
    expect(await world.file(body.siteId)).not.toContain(image);
    for (const [as, change] of [
      ['root', { image }],
      ['admin', { name: 'New name' }],
    ] as const) {
      const { status } = await world.call('PATCH', `/server-containers/${body.id}`, { as, body: change });
      expect(status).toBe(200);
      expect(await world.file(body.siteId)).toContain(`\nimage: ${image}\n`);
    }
  });

  test('rotates the loader token and keeps the old one until the grace date', async () => {
    const { body } = await create();
    const { body: rotated } = await world.call('POST', `/server-containers/${body.id}/loader-token`, {
      as: 'owner',
      body: { graceUntil: '2030-01-31' },
    });
    expect(rotated.loaderToken).not.toBe(body.loaderToken);
    expect(await world.file(body.siteId)).toMatch(
      new RegExp(`token: ${body.loaderToken}\\n\\s+until: "?2030-01-31`),
    );
  });

  test.each([
    [
      'a foreign custom domain',
      'POST',
      '/custom-domains',
      { domain: 'metrics.elsewhere.example' },
      422,
      'foreign_domain',
    ],
    [
      'a domain that isn’t there',
      'DELETE',
      '/domains?domain=nowhere.example',
      undefined,
      404,
      'unknown_domain',
    ],
    ['a body without a change', 'PATCH', '', {}, 400, 'invalid_request'],
    ['an unknown flag', 'PATCH', '', { features: { magic: true } }, 400, 'invalid_request'],
    ['an image by a tag that moves', 'PATCH', '', { image: 'gtm:stable' }, 400, 'invalid_request'],
    ['a body with an unknown member', 'PATCH', '', { status: 'verified' }, 400, 'invalid_request'],
    [
      'a reserved path',
      'PATCH',
      '',
      { modules: { server_proxy: { paths: ['/boot'] } } },
      400,
      'invalid_request',
    ],
  ] as const)('refuses %s', async (_what, method, path, body, status, code) => {
    const { body: made } = await create();
    const answer = await world.call(method, `/server-containers/${made.id}${path}`, { as: 'owner', body });
    expect({ status: answer.status, code: answer.body.code }).toEqual({ status, code });
  });

  test('refuses a too long custom domain as an invalid value, not as a foreign domain', async () => {
    const { body: made, domain } = await create();
    const long = `${Array.from({ length: 4 }, () => 'a'.repeat(56)).join('.')}.${domain}`;
    const path = `/server-containers/${made.id}/custom-domains`;
    const { body } = await world.call('POST', path, { as: 'owner', body: { domain: long } });
    expect(body).toMatchObject({
      status: 400,
      code: 'invalid_request',
      errors: [{ path: 'domain', message: expect.stringMatching(/^must have at most \d+ characters/) }],
    });
  });

  test('refuses to remove the last domain, and to add a domain of another site', async () => {
    const [one, two] = [await create(), await create()];
    const last = await world.call(
      'DELETE',
      `/server-containers/${one.body.id}/domains?domain=${one.domain}`,
      {
        as: 'owner',
      },
    );
    expect(last.body.code).toBe('last_domain');
    const taken = await world.call('POST', `/server-containers/${one.body.id}/domains`, {
      as: 'owner',
      body: { domain: two.domain, webTagId: 'GTM-ABCD' },
    });
    expect(taken.body.code).toBe('domain_in_use');
  });
});

describe('a removal', () => {
  test('releases ports and domains only when the provisioner reports that the site is gone', async () => {
    const { body, domain } = await create();
    await becomes(body.id, 'active');
    const leased = await world.leased();
    world.provisioner.auto = false;
    const { status, body: removing } = await world.call('DELETE', `/server-containers/${body.id}`, {
      as: 'owner',
    });
    expect({ status, state: removing.status }).toEqual({ status: 202, state: 'deprovisioning' });
    expect(await world.file(body.siteId)).toContain('state: absent');
    await eventually(() =>
      expect(world.provisioner.calls).toContainEqual(expect.objectContaining({ path: '/deprovision' })),
    );
    expect(await world.leased()).toBe(leased);

    world.provisioner.finish(body.siteId, 'succeeded');
    world.provisioner.sites.set(body.siteId, { reason: 'Removed', message: '' });
    world.provisioner.auto = true;
    await becomes(body.id, 'removed');
    expect(await world.leased()).toBe(leased - 1);
    const again = await world.call('POST', '/server-containers', {
      as: 'owner',
      body: creation(client, domain),
    });
    expect(again.status).toBe(202);
  });

  test('is refused for a protected site', async () => {
    const { body } = await create();
    await becomes(body.id, 'active');
    const text = (await world.file(body.siteId)) ?? '';
    await world.repo.commit({
      site: body.siteId,
      subject: 'Protect',
      author: { name: 'Olga', email: 'olga@example.test' },
      trailers: {},
      edit: () => text.replace('state: present', 'state: present\nprotect: true'),
    });
    const answer = await world.call('DELETE', `/server-containers/${body.id}`, { as: 'owner' });
    expect({ status: answer.status, code: answer.body.code }).toEqual({
      status: 409,
      code: 'site_protected',
    });
  });

  test('records every status in events', async () => {
    const { body } = await create();
    await becomes(body.id, 'active');
    await world.call('DELETE', `/server-containers/${body.id}`, { as: 'owner' });
    await becomes(body.id, 'removed');
    const { body: answer } = await world.call('GET', `/server-containers/${body.id}/events`, {
      as: 'viewer',
    });
    const statuses = answer.events
      .filter((event: { kind: string }) => event.kind === 'status')
      .map((event: { status: string }) => event.status);
    expect(statuses).toEqual(['provisioning', 'active', 'deprovisioning', 'removed']);
  });
});

test('the containers of a client are listed in pages, the newest first', async () => {
  const made = [await create(), await create(), await create()].map(({ body }) => body.id);
  const list = async (query: string) =>
    (await world.call('GET', `/server-containers?clientId=${client}&${query}`, { as: 'viewer' })).body;
  const first = await list('limit=2');
  expect(first.containers.map(({ id }: { id: string }) => id)).toEqual([made[2], made[1]]);
  const second = await list(`limit=2&after=${first.next}`);
  expect(second).toMatchObject({ containers: [{ id: made[0] }], next: null });
});
