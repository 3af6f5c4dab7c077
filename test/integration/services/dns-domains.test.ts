import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { Resolvers } from '../../../management/clients/resolvers.ts';
import { describeWith, testWith } from '../../support/components.ts';
import { KNOT_ZONE, type Knot, startKnot } from '../../support/dns/knot.ts';
import { eventually } from '../../support/eventually.ts';
import { creation, World } from '../../support/management/world.ts';
import { movableClock } from '../../support/movable-clock.ts';

/** The zone of the client; that of the origin hostnames is `KNOT_ZONE`. */
const ZONE = 'acme.example';
const PAGE = `www.${ZONE}`;
const CUSTOM = `data.${ZONE}`;
/** Addresses of the host, of the pages in the same network, and of a server elsewhere. */
const [HOST, NEAR, FAR] = ['192.0.2.1', '192.0.2.200', '198.51.100.7'];

let knot: Knot;
beforeAll(async () => {
  knot = await startKnot({ zones: [ZONE] });
});
afterAll(() => knot.close());

const clock = movableClock();
let world: World;
let id: string;
let siteId: string;
let origin: string;
beforeEach(async () => {
  world = await World.open({
    clock,
    logLevel: 'silent',
    resolvers: new Resolvers(Array(3).fill(`127.0.0.1:${knot.port}`), { timeoutMs: 300 }),
    settings: { domainProof: 'dns', edgeDomain: 'tagyard-tests.org', originDomain: KNOT_ZONE },
  });
  const created = await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(await world.client(), PAGE),
  });
  ({ id, siteId } = created.body);
  origin = created.body.hostnames.origin;
  await eventually(async () =>
    expect((await world.call('GET', `/server-containers/${id}`, { as: 'owner' })).body.status).toBe('active'),
  );
  await zone(`del ${PAGE}. A`, `del ${CUSTOM}. A`, `del ${CUSTOM}. CNAME`, 'del _tagyard-challenge TXT');
  await zone(`add ${PAGE}. 60 A ${NEAR}`);
  await knot.update(`del ${origin}. A`, `add ${origin}. 60 A ${HOST}`);
  await add(CUSTOM);
});
afterEach(() => world.close());

const zone = (...lines: string[]) => knot.updateZone(ZONE, ...lines);
const add = (domain: string) =>
  world.call('POST', `/server-containers/${id}/custom-domains`, { as: 'owner', body: { domain } });
const read = (path: string, as = 'owner') =>
  world.call('GET', `/server-containers/${id}${path === '' ? '' : `/${path}`}`, { as });
/** Moves the clock past the pause between two checks, and makes a check. */
async function check(path: string, as = 'owner') {
  clock.advance(10_000);
  return await world.call('POST', `/server-containers/${id}/${path}/check`, { as });
}
const custom = `custom-domains/${CUSTOM}`;

describeWith('knot', 'a custom domain', () => {
  test('is shown with the records to set and what the resolvers last answered', async () => {
    const { status, body } = await read(custom);
    expect([status, body]).toMatchObject([
      200,
      {
        domain: CUSTOM,
        served: false,
        records: [
          { type: 'CNAME', name: CUSTOM, value: origin },
          { type: 'A', name: CUSTOM, value: HOST },
        ],
        dns: { status: 'missing', expected: { alias: origin, addresses: [HOST] } },
        proof: { status: 'pending', record: { name: `_tagyard-challenge.${ZONE}` } },
      },
    ]);
    expect(body.dns.detail).toContain(`set a CNAME record of ${CUSTOM} to ${origin}`);
    expect(body.dns.answers).toHaveLength(3);

    await zone(`add ${CUSTOM}. 60 A ${FAR}`);
    // The resolvers' answers are kept for a minute; only a check asks the resolvers again before that.
    expect((await read(custom)).body.dns.status).toBe('missing');
    const wrong = (await check(custom)).body;
    expect([wrong.dns.status, wrong.dns.answers[0].addresses]).toEqual(['wrong', [FAR]]);
    expect(wrong.dns.detail).toContain(`leads to ${FAR}`);

    await zone(`del ${CUSTOM}. A`, `add ${CUSTOM}. 60 CNAME ${origin}.`);
    const right = (await check(custom)).body;
    expect(right.dns).toMatchObject({ status: 'ok', detail: null, answers: { 0: { aliases: [origin] } } });
    expect(right.cookieLifetime).toEqual({
      verdict: 'seven_days',
      reason: `${CUSTOM} is a CNAME to ${origin}, which is not part of ${ZONE}`,
    });

    await zone(`del ${CUSTOM}. CNAME`, `add ${CUSTOM}. 60 A ${HOST}`);
    const near = (await check(custom)).body;
    expect([near.dns.status, near.cookieLifetime]).toEqual(['ok', { verdict: 'full', reason: null }]);
  });

  test('is served once a check has found the proof', async () => {
    const { record } = (await read(custom)).body.proof;
    await zone(`add _tagyard-challenge 60 TXT "${record.value}"`);
    const { body } = await check(custom);
    expect(body).toMatchObject({ served: true, proof: { status: 'proven', checkedAt: expect.any(String) } });
    expect(await world.file(siteId)).not.toContain('unproven');
    const domain = (await read(`domains/${PAGE}`)).body;
    expect([domain.proof.status, domain.address]).toEqual(['proven', `https://${CUSTOM}`]);
  });

  test('that is the only address of the pages’ tags makes the site wait for DNS until it leads here', async () => {
    const site = async () => (await read('')).body.state;
    const listed = async (state: string) =>
      (await world.call('GET', `/server-containers?view=summary&state=${state}`, { as: 'owner' })).body
        .containers;
    // Before its proof it has a state of its own: the pages load their tags from the edge hostname.
    expect((await read(custom)).body.state.name).toBe('waits_for_proof');
    expect((await site()).name).toBe('serving');
    const { record } = (await read(custom)).body.proof;
    await zone(`add _tagyard-challenge 60 TXT "${record.value}"`);
    await check(custom);
    const remedy = `${CUSTOM} doesn’t exist in DNS: set a CNAME record of ${CUSTOM} to ${origin}, or address records to ${HOST}`;
    await eventually(async () =>
      expect(await site()).toMatchObject({ name: 'waits_for_dns', detail: remedy, also: [] }),
    );
    expect((await read(custom)).body.state).toMatchObject({ name: 'waits_for_dns', remedy });
    expect(await listed('waits_for_dns')).toMatchObject([{ id, state: { name: 'waits_for_dns' } }]);
    expect((await world.call('GET', '/server-containers/summary', { as: 'owner' })).body.state).toMatchObject(
      {
        waits_for_dns: 1,
        serving: 0,
      },
    );
    const metrics = await world.management?.app.inject({ url: '/metrics', remoteAddress: '127.0.0.1' });
    expect(metrics?.body).toContain('tagyard_container_states{state="waits_for_dns"} 1');

    // A second one that leads here serves the pages: the first one is pending without hiding anything.
    await zone(`add more.${CUSTOM}. 60 CNAME ${origin}.`);
    await add(`more.${CUSTOM}`);
    await eventually(async () => expect((await site()).name).toBe('serving'));
    expect((await read(custom)).body.state.name).toBe('waits_for_dns');

    // Nobody reads it: the resolvers are asked again all the same.
    await zone(`del more.${CUSTOM}. CNAME`);
    clock.advance(660_000);
    await eventually(async () => expect((await site()).name).toBe('waits_for_dns'));
    await zone(`add ${CUSTOM}. 60 CNAME ${origin}.`);
    clock.advance(660_000);
    await eventually(async () => expect(await site()).toMatchObject({ name: 'serving', detail: null }));
    const { events } = (await read('events')).body;
    const states = events.filter(({ kind }: { kind: string }) => kind === 'state');
    expect(states.map(({ state }: { state: string }) => state)).toEqual([
      'serving',
      'waits_for_dns',
      'serving',
      'waits_for_dns',
      'serving',
    ]);
    await zone(`del more.${CUSTOM}. CNAME`);
  });

  test('is checked at most once in ten seconds', async () => {
    expect((await check(custom)).status).toBe(200);
    const again = await world.call('POST', `/server-containers/${id}/${custom}/check`, { as: 'owner' });
    expect([again.status, again.body.code, Number(again.headers['retry-after'])]).toEqual([
      429,
      'rate_limited',
      expect.any(Number),
    ]);
    expect((await check(custom)).status).toBe(200);
  });

  test('is shown with the certificate and the last error that the host knows', async () => {
    const site = world.provisioner.sites.get(siteId);
    if (site === undefined) throw new Error('the provisioner has no site');
    expect((await read(custom)).body.tls).toMatchObject({
      status: 'unknown',
      detail: 'no certificate is ordered before the domain is proven',
    });
    const { record } = (await read(custom)).body.proof;
    await zone(`add _tagyard-challenge 60 TXT "${record.value}"`);
    expect((await check(custom)).body.tls).toMatchObject({ status: 'unknown', issuer: null });
    const certificate = {
      target: 'certificate' as const,
      key: CUSTOM,
      addresses: null,
      nextCheck: null,
      issuer: 'R11',
      notAfter: '2030-05-01T00:00:00.000Z',
    };
    site.resources = [{ ...certificate, state: 'live', reason: '' }];
    expect((await read(custom)).body.tls).toEqual({
      status: 'live',
      issuer: 'R11',
      notAfter: '2030-05-01T00:00:00.000Z',
      detail: null,
    });
    await zone(`add ${CUSTOM}. 60 A ${FAR}`);
    const ready = (await check(custom)).body;
    expect(ready.state).toEqual({
      name: 'ready_to_switch',
      sentence: expect.stringContaining('with a valid certificate'),
      remedy: ready.dns.detail,
    });
    site.resources = [{ ...certificate, notAfter: clock.date().toISOString(), state: 'live', reason: '' }];
    expect((await read(custom)).body.state.name).toBe('waits_for_dns');
    site.resources = [
      {
        ...certificate,
        issuer: null,
        notAfter: null,
        state: 'pending_certificate',
        reason: 'CAA forbids it',
      },
    ];
    expect((await read(custom)).body.tls).toMatchObject({
      status: 'pending_certificate',
      detail: 'CAA forbids it',
    });
    await world.provisioner.stop();
    expect((await read(custom)).body.tls).toMatchObject({
      status: 'unknown',
      detail: expect.stringContaining('doesn’t answer'),
    });
  });

  test('is listed in pages, read by members, and checked by those who may change settings', async () => {
    for (const name of [`b.${ZONE}`, `a.${ZONE}`]) await add(name);
    const first = (await read('custom-domains?limit=2')).body;
    expect(first.items.map(({ domain }: { domain: string }) => domain)).toEqual([`a.${ZONE}`, `b.${ZONE}`]);
    const rest = (await read(`custom-domains?limit=2&cursor=${first.next}`)).body;
    expect([rest.items.length, rest.items[0].domain, rest.next]).toEqual([1, CUSTOM, null]);
    expect((await read(custom, 'viewer')).status).toBe(200);
    expect((await check(custom, 'viewer')).body.code).toBe('forbidden');
    expect((await read(custom, 'stranger')).body.code).toBe('unknown_container');
    expect((await read(`custom-domains/other.${ZONE}`)).body.code).toBe('unknown_domain');
    expect((await check(`custom-domains/other.${ZONE}`)).body.code).toBe('unknown_domain');
    expect((await read(`domains/other.${ZONE}`)).body.code).toBe('unknown_domain');
  });
});

testWith(
  'knot',
  'a domain is shown with its proof, the base of its pages, and how long their cookies live',
  async () => {
    const path = `domains/${PAGE}`;
    const body = { domain: PAGE, sameOrigin: { path: '/m3trics1' } };
    await world.call('POST', `/server-containers/${id}/domains`, { as: 'owner', body });
    const before = (await read(path)).body;
    expect(before).toMatchObject({
      domain: PAGE,
      active: true,
      address: `https://${siteId}.tagyard-tests.org`,
      sameOrigin: { path: '/m3trics1', served: false },
      proof: { status: 'pending' },
      records: [
        { type: 'TXT', name: `_tagyard-challenge.${ZONE}`, value: expect.stringMatching(/^tagyard-/) },
      ],
      dns: { answers: { 0: { addresses: [NEAR] } } },
      cookieLifetime: { verdict: 'seven_days' },
    });
    await zone(`add _tagyard-challenge 60 TXT "${before.records[0].value}"`);
    expect((await check(path)).body).toMatchObject({
      address: `https://${PAGE}/m3trics1`,
      sameOrigin: { served: true },
      proof: { status: 'proven' },
      cookieLifetime: { verdict: 'full', reason: null },
    });
  },
);
