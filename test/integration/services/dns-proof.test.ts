import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { Resolvers } from '../../../management/clients/resolvers.ts';
import { parseManifest } from '../../../sites/manifest/load.ts';
import { describeWith } from '../../support/components.ts';
import { type Knot, startKnot } from '../../support/dns/knot.ts';
import { eventually } from '../../support/eventually.ts';
import { creation, World } from '../../support/management/world.ts';
import { movableClock } from '../../support/movable-clock.ts';

const DAY_MS = 86_400_000;
/** The registrable domain of all names here: Knot's zone. */
const DOMAIN = 'example.net';

let knot: Knot;
/** A DNS server that never answers. */
const silent = createSocket('udp4');
beforeAll(async () => {
  knot = await startKnot();
  silent.bind(0, '127.0.0.1');
  await once(silent, 'listening');
});
afterAll(async () => {
  await knot.close();
  silent.close();
});

const knots = () => `127.0.0.1:${knot.port}`;
const publish = (...values: string[]) =>
  knot.update(
    'del _tagyard-challenge TXT',
    ...values.map((value) => `add _tagyard-challenge 60 TXT "${value}"`),
  );

describeWith('knot', 'resolvers, each asked separately', () => {
  const ask = async (server: string, name: string) =>
    (await new Resolvers([server], { timeoutMs: 200 }).txt(name))[0];

  test('answer with a record in parts, several, or none, also for a name that doesn’t exist', async () => {
    await knot.update(
      'del parts TXT',
      'add parts 60 TXT "one" "two"',
      'add parts 60 TXT "three"',
      'add parts 60 A 192.0.2.1',
    );
    const answer = await ask(knots(), `parts.${DOMAIN}`);
    expect(answer).toMatchObject({ resolver: knots() });
    expect(answer !== undefined && 'values' in answer ? [...answer.values].sort() : []).toEqual([
      'onetwo',
      'three',
    ]);
    await knot.update('del parts TXT');
    expect(await ask(knots(), `parts.${DOMAIN}`)).toEqual({ resolver: knots(), values: [] });
    expect(await ask(knots(), `no-such-name.${DOMAIN}`)).toEqual({ resolver: knots(), values: [] });
  });

  test('that refuse, never answer or don’t exist give no answer, which proves no absence', async () => {
    expect(await ask(knots(), 'another-zone.example')).toEqual({ resolver: knots(), problem: 'EREFUSED' });
    const away = `127.0.0.1:${silent.address().port}`;
    expect(await ask(away, DOMAIN)).toEqual({ resolver: away, problem: 'ETIMEOUT' });
    expect(await ask('127.0.0.1:1', DOMAIN)).toMatchObject({ problem: expect.stringMatching(/^E/) });
  });

  test('answer the addresses and the alias of a host', async () => {
    await knot.update(
      'del alias CNAME',
      'del target A',
      'add target 60 A 192.0.2.7',
      'add alias 60 CNAME target',
    );
    const [answer] = await new Resolvers([knots()]).host(`alias.${DOMAIN}`);
    expect(answer).toEqual({
      resolver: knots(),
      addresses: ['192.0.2.7'],
      aliases: [`target.${DOMAIN}`],
      problem: null,
    });
  });
});

describeWith('knot', 'a domain of a client', () => {
  const clock = movableClock();
  let world: World;
  let clients: Record<'ada' | 'bob', string>;
  beforeEach(async () => {
    await publish();
    world = await World.open({
      clock,
      logLevel: 'silent',
      // More than half of them answer, one never does.
      resolvers: new Resolvers([knots(), knots(), `127.0.0.1:${silent.address().port}`], { timeoutMs: 100 }),
      settings: {
        domainProof: 'dns',
        edgeDomain: 'edge.tagyard-tests.org',
        originDomain: 'origin.tagyard-tests.org',
      },
    });
    clients = { ada: await newClient('ada'), bob: await newClient('bob') };
  });
  afterEach(() => world.close());

  async function newClient(owner: string): Promise<string> {
    const body = { name: `Client of ${owner}`, members: [{ subject: owner, role: 'owner' }] };
    return (await world.call('POST', '/clients', { as: 'root', body })).body.id;
  }
  type Tenant = 'ada' | 'bob';
  const create = (as: Tenant, domain: string) =>
    world.call('POST', '/server-containers', { as, body: creation(clients[as], domain) });
  const plan = (as: Tenant, path: string, body: object) =>
    world.call('POST', `/server-containers${path}?dryRun=1`, { as, body });
  const MOVE = `${DOMAIN} moves away from the client that has it now, because of the TXT record`;
  const read = async (as: Tenant, id: string) =>
    (await world.call('GET', `/server-containers/${id}`, { as })).body;
  async function made(as: Tenant, domain: string) {
    const { status, body } = await create(as, domain);
    expect([status, body.code, body.detail]).toEqual([202, undefined, undefined]);
    await eventually(async () => expect(await read(as, body.id)).toMatchObject({ status: 'active' }));
    return body;
  }
  const proofOf = async (as: Tenant, id: string) => (await read(as, id)).domains[0].proof;
  const shows = (as: Tenant, id: string, proof: object) =>
    eventually(async () => expect(await proofOf(as, id)).toMatchObject(proof));
  async function unproven(site: string): Promise<readonly string[] | undefined> {
    const parsed = parseManifest((await world.file(site)) ?? '', `${site}.yaml`);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    return parsed.manifest.unproven;
  }
  const gitShows = (site: string, expected: string[] | undefined) =>
    eventually(async () => expect(await unproven(site)).toEqual(expected));
  /** Lets time pass, and waits until a check has been made since. */
  async function later(as: Tenant, id: string, ms: number) {
    const { checkedAt } = await proofOf(as, id);
    clock.advance(ms);
    await eventually(async () => expect((await proofOf(as, id)).checkedAt).not.toBe(checkedAt));
  }

  test('is served by the edge hostname only, until its record is found', async () => {
    const { id, siteId, hostnames } = await made('ada', `shop.${DOMAIN}`);
    await world.call('POST', `/server-containers/${id}/custom-domains`, {
      as: 'ada',
      body: { domain: `data.${DOMAIN}` },
    });
    const body = { domain: `shop.${DOMAIN}`, sameOrigin: { path: '/m3trics1' } };
    await world.call('POST', `/server-containers/${id}/domains`, { as: 'ada', body });
    expect(await unproven(siteId)).toEqual([DOMAIN]);
    await shows('ada', id, { status: 'pending' });
    const waiting = await read('ada', id);
    const { record } = waiting.domains[0].proof;
    expect(record.name).toBe(`_tagyard-challenge.${DOMAIN}`);
    expect(waiting).toMatchObject({ statusReason: 'domain_unproven', customDomains: [`data.${DOMAIN}`] });
    expect(waiting.statusDetail).toContain(record.value);
    expect(waiting.snippet).toContain(hostnames.edge);
    expect(waiting.snippet).not.toContain('m3trics1');

    await publish('of-a-stranger', record.value);
    await later('ada', id, 600_000);
    await shows('ada', id, { status: 'proven', absentSince: null });
    await gitShows(siteId, undefined);
    await eventually(async () => {
      const proven = await read('ada', id);
      expect(proven.snippet).toContain('/m3trics1');
      expect([proven.statusReason, proven.statusDetail]).toEqual([null, null]);
    });
    const { events } = (await world.call('GET', `/server-containers/${id}/events`, { as: 'ada' })).body;
    expect(events.filter(({ kind }: { kind: string }) => kind === 'proof')).toMatchObject([
      { reason: null, detail: `${DOMAIN} is proven to be the client’s` },
    ]);

    // It is proven for all of the client's containers, and all names under it.
    const second = await made('ada', `second.${DOMAIN}`);
    expect([await unproven(second.siteId), second.domains[0].proof.status]).toEqual([undefined, 'proven']);
  });

  test('is still served when its record vanishes, until the record has been absent for fourteen days', async () => {
    const { id, siteId } = await made('ada', `shop.${DOMAIN}`);
    const { record } = await proofOf('ada', id);
    await publish(record.value);
    await later('ada', id, 600_000);
    await shows('ada', id, { status: 'proven' });
    await gitShows(siteId, undefined);

    await publish();
    await later('ada', id, DAY_MS);
    await shows('ada', id, { status: 'proven', absentSince: expect.any(String) });
    expect(await read('ada', id)).toMatchObject({ statusReason: 'domain_unproven' });
    expect(await unproven(siteId)).toBeUndefined();
    // Servers that fail prove no absence, however long they fail.
    await knot.stop();
    try {
      await later('ada', id, 20 * DAY_MS);
      await shows('ada', id, { status: 'proven', absentSince: expect.any(String) });
    } finally {
      await knot.start();
    }
    await later('ada', id, DAY_MS);
    await shows('ada', id, { status: 'lost' });
    await gitShows(siteId, [DOMAIN]);
    // A change of the container doesn't bring the domain back.
    await world.call('PATCH', `/server-containers/${id}`, { as: 'ada', body: { name: 'Renamed' } });
    expect(await unproven(siteId)).toEqual([DOMAIN]);

    await publish(record.value);
    await later('ada', id, DAY_MS);
    await shows('ada', id, { status: 'proven', absentSince: null });
    await gitShows(siteId, undefined);
    const { events } = (await world.call('GET', `/server-containers/${id}/events`, { as: 'ada' })).body;
    const reasons = events
      .filter(({ kind }: { kind: string }) => kind === 'proof')
      .map(({ reason }: never) => reason);
    expect(reasons).toEqual([null, 'domain_unproven', 'domain_unproven', null]);
  });

  test('moves to another client only by that client’s record, and only if the holder’s is gone', async () => {
    const ada = await made('ada', `shop.${DOMAIN}`);
    const adas = (await proofOf('ada', ada.id)).record.value;
    await publish(adas);
    await later('ada', ada.id, 600_000);
    await shows('ada', ada.id, { status: 'proven' });

    const refused = await create('bob', `shop.${DOMAIN}`);
    expect([refused.status, refused.body.code]).toEqual([409, 'domain_in_use']);
    const [bobs = ''] = /tagyard-[\w-]+/.exec(refused.body.detail.replace('_tagyard-challenge', '')) ?? [];
    expect(bobs).not.toBe(adas);
    await publish(adas, bobs);
    expect((await create('bob', `shop.${DOMAIN}`)).body.code).toBe('domain_in_use');

    await publish(bobs);
    const { status, body } = await plan('bob', '', creation(clients.bob, `shop.${DOMAIN}`));
    expect([status, body.code, body.plan?.warnings]).toEqual([
      200,
      undefined,
      expect.arrayContaining([MOVE]),
    ]);
    expect(body.plan.changes.map(({ path }: { path: string }) => path)).not.toContain('unproven');
    await shows('ada', ada.id, { status: 'proven' });
    const bob = await made('bob', `shop.${DOMAIN}`);
    await shows('bob', bob.id, { status: 'proven' });
    expect(await unproven(bob.siteId)).toBeUndefined();
    await gitShows(ada.siteId, [DOMAIN]);
    await shows('ada', ada.id, { status: 'lost' });
    const { events } = (await world.call('GET', `/server-containers/${ada.id}/events`, { as: 'ada' })).body;
    expect(events.filter(({ kind }: { kind: string }) => kind === 'proof').at(-1)).toMatchObject({
      reason: 'domain_unproven',
    });
    await eventually(async () =>
      expect(await read('ada', ada.id)).toMatchObject({ status: 'active', statusReason: 'domain_in_use' }),
    );
    // What has nothing to do with the lost domain can be undone.
    await world.call('PATCH', `/server-containers/${ada.id}`, { as: 'ada', body: { name: 'Renamed' } });
    const { history } = (
      await world.call('GET', `/server-containers/${ada.id}/history?limit=1`, { as: 'ada' })
    ).body;
    const undone = await world.call('POST', `/server-containers/${ada.id}/revert`, {
      as: 'ada',
      body: { commit: history[0].commit },
    });
    expect([undone.status, undone.body.code, undone.body.name]).toEqual([200, undefined, ada.name]);
    // Both records: the domain stays with the client that has it now.
    await publish(adas, bobs);
    await later('ada', ada.id, DAY_MS);
    await shows('ada', ada.id, { status: 'lost' });
    const again = await world.call('POST', `/server-containers/${ada.id}/domains`, {
      as: 'ada',
      body: { domain: `new.${DOMAIN}`, webTagId: 'GTM-AAAA' },
    });
    expect(again.body.code).toBe('domain_in_use');
  });

  test('that is only named, not proven, moves to the client that proves it', async () => {
    const squatter = await made('bob', DOMAIN);
    const other = await made('ada', 'other.example');
    const body = { domain: `shop.${DOMAIN}`, webTagId: 'GTM-AAAA' };
    const added = () => plan('ada', `/${other.id}/domains`, body);
    expect((await added()).body.code).toBe('domain_in_use');
    const refused = await create('ada', `shop.${DOMAIN}`);
    const [adas = ''] = /tagyard-[\w-]+/.exec(refused.body.detail.replace('_tagyard-challenge', '')) ?? [];
    await publish(adas);
    expect((await added()).body.plan).toMatchObject({
      changes: [{ path: `domains[shop.${DOMAIN}]` }],
      warnings: [MOVE],
    });
    expect((await proofOf('bob', squatter.id)).status).toBe('pending');
    const ada = await made('ada', `shop.${DOMAIN}`);
    await shows('ada', ada.id, { status: 'proven' });
    expect(await unproven(squatter.siteId)).toEqual([DOMAIN]);
    // The squatter's site keeps its edge hostname.
    expect(await read('bob', squatter.id)).toMatchObject({ status: 'active' });
  });

  test('is free for another client’s proof when the holder has no name in it any more', async () => {
    const ada = await made('ada', `shop.${DOMAIN}`);
    await publish((await proofOf('ada', ada.id)).record.value);
    await later('ada', ada.id, 600_000);
    await shows('ada', ada.id, { status: 'proven' });
    await world.call('DELETE', `/server-containers/${ada.id}`, { as: 'ada' });
    await eventually(async () => expect((await read('ada', ada.id)).status).toBe('removed'));
    const bob = await made('bob', `shop.${DOMAIN}`);
    await shows('bob', bob.id, { status: 'pending' });
    await publish((await proofOf('bob', bob.id)).record.value);
    await later('bob', bob.id, 600_000);
    await shows('bob', bob.id, { status: 'proven' });
  });

  test('counts as proven for ever if it was in use before proofs were required', async () => {
    await world.stop();
    Object.assign(world.settings, { domainProof: 'off' });
    await world.start();
    const { id, siteId, domains } = await made('ada', `shop.${DOMAIN}`);
    expect(domains[0].proof).toBeNull();
    expect(await unproven(siteId)).toBeUndefined();
    await world.stop();
    Object.assign(world.settings, { domainProof: 'dns' });
    await world.start();
    for (const days of [1, 20, 20]) await later('ada', id, days * DAY_MS);
    await shows('ada', id, { status: 'proven', absentSince: null });
    expect(await unproven(siteId)).toBeUndefined();
    expect((await made('ada', `other.${DOMAIN}`)).domains[0].proof.status).toBe('proven');
  });

  test('is not proven by an edit of the manifest in git', async () => {
    const { id, siteId } = await made('ada', `shop.${DOMAIN}`);
    const dir = await world.clone();
    const file = join(dir, `${siteId}.yaml`);
    await writeFile(file, (await readFile(file, 'utf8')).replace(`unproven:\n  - ${DOMAIN}\n`, ''));
    await world.git(dir, 'commit', '--quiet', '-am', 'Serve it at once');
    await world.git(dir, 'push', '--quiet');
    expect(await unproven(siteId)).toBeUndefined();
    await eventually(async () => {
      clock.advance(60_000);
      expect(await unproven(siteId)).toEqual([DOMAIN]);
    });
    await shows('ada', id, { status: 'pending' });
  });

  test('has the same record and the same status after the loss of the database', async () => {
    const { id, siteId } = await made('ada', `shop.${DOMAIN}`);
    const { record } = await proofOf('ada', id);
    const other = await World.open({
      clock,
      logLevel: 'silent',
      bare: world.bare,
      resolvers: new Resolvers([knots()]),
      settings: world.settings,
    });
    try {
      await other.owner.insertInto('clients').values({ id: clients.ada, name: 'Ada' }).execute();
      const member = { client_id: clients.ada, subject: 'ada', role: 'owner' };
      await other.owner.insertInto('client_memberships').values(member).execute();
      await world.git(await clonedWithTouch(siteId), 'push', '--quiet');
      const found = () => other.call('GET', `/server-containers/${id}`, { as: 'ada' });
      await eventually(async () =>
        expect((await found()).body.domains[0].proof).toMatchObject({ status: 'pending', record }),
      );
      await publish(record.value);
      await eventually(async () => {
        // Each attempt moves the clock: a search for due checks that already runs doesn't notice it, and the next
        // search begins 30 s later.
        clock.advance(600_000);
        expect((await found()).body.domains[0].proof).toMatchObject({ status: 'proven' });
      });
    } finally {
      await other.close();
    }
  });

  /** A clone with a commit that, once pushed, makes management read the repository again. */
  async function clonedWithTouch(site: string): Promise<string> {
    const dir = await world.clone();
    await world.git(dir, 'commit', '--quiet', '--allow-empty', '-m', `Touch ${site}`);
    return dir;
  }
});
