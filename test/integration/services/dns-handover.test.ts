import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Resolvers } from '../../../management/clients/resolvers.ts';
import type { Settings } from '../../../management/context/context.ts';
import { describeWith } from '../../support/components.ts';
import { KNOT_ZONE, type Knot, startKnot } from '../../support/dns/knot.ts';
import { eventually } from '../../support/eventually.ts';
import { type OpenSmtpd, startOpenSmtpd } from '../../support/mail/opensmtpd.ts';
import { creation, World } from '../../support/management/world.ts';
import { movableClock } from '../../support/movable-clock.ts';

const ZONE = 'acme.example';
const CUSTOM = `data.${ZONE}`;
const CLIENT = 'Acme <b>& Co</b>';
const SENDER = 'Tagyard <tagyard@example.net>';
const RECIPIENTS = ['dns@acme.example', 'boss@acme.example'];

describeWith(['knot', 'opensmtpd', 'root', 'mount'], 'a link to the DNS records of a client', () => {
  const clock = movableClock();
  let [knot, smtpd, world]: [Knot, OpenSmtpd, World] = [] as never;
  let client = '';
  let container = '';
  let origin = '';
  beforeAll(async () => {
    [knot, smtpd] = await Promise.all([startKnot({ zones: [ZONE] }), startOpenSmtpd()]);
    world = await World.open({
      clock,
      resolvers: new Resolvers(Array(3).fill(`127.0.0.1:${knot.port}`), { timeoutMs: 300 }),
      settings: {
        ...{ domainProof: 'dns', edgeDomain: 'tagyard-tests.org', originDomain: KNOT_ZONE },
        ...{ publicUrl: 'https://api.example.net', mail: { url: smtpd.url, from: SENDER } },
      },
    });
    client = await world.client(CLIENT);
    const body = creation(client, `www.${ZONE}`);
    const created = await world.call('POST', '/server-containers', { as: 'owner', body });
    container = created.body.id;
    origin = created.body.hostnames.origin;
    const at = `/server-containers/${container}`;
    await eventually(async () =>
      expect((await world.call('GET', at, { as: 'owner' })).body.status).toBe('active'),
    );
    await knot.update(`del ${origin}. A`, `add ${origin}. 60 A 192.0.2.1`);
    await world.call('POST', `${at}/custom-domains`, { as: 'owner', body: { domain: CUSTOM } });
  });
  afterAll(() => Promise.all([world?.close(), knot?.close(), smtpd?.close()]));

  /** An empty mailbox, and no record in the zone. What was proven before stays proven. */
  beforeEach(async () => {
    await smtpd.empty();
    await knot.updateZone(
      ZONE,
      `del ${CUSTOM}. CNAME`,
      `del ${CUSTOM}. A`,
      `del ${CUSTOM}. AAAA`,
      'del _tagyard-challenge TXT',
    );
    for (const { id } of await listed()) await world.call('DELETE', `${links()}/${id}`, { as: 'admin' });
    // After this, the earlier answers are too old.
    clock.advance(60_000);
  });

  async function restart(mail: Settings['mail']): Promise<void> {
    await world.stop();
    Object.assign(world.settings, { mail });
    await world.start();
    await world.listen();
  }

  const links = () => `/clients/${client}/handover-links`;
  const make = (body: object = { recipients: RECIPIENTS }, as = 'admin', query = '') =>
    world.call('POST', `${links()}${query}`, { as, body });
  const listed = async () => (await world.call('GET', links(), { as: 'admin' })).body.items;
  async function page(secret: string, end = ''): Promise<{ status: number; headers: Headers; text: string }> {
    const answer = await fetch(`${await world.listen()}/handover/${secret}${end}`);
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  }
  const proofValue = async (secret: string) =>
    /tagyard-[\w-]{40,}/.exec((await page(secret)).text)?.[0] ?? '';
  /** Moves the clock past the pause between two checks; returns the result of a new check. */
  async function records(secret: string) {
    clock.advance(10_000);
    return JSON.parse((await page(secret, '/records')).text);
  }
  const setAll = async (value: string) =>
    await knot.updateZone(
      ZONE,
      `add ${CUSTOM}. 60 CNAME ${origin}.`,
      `add _tagyard-challenge 60 TXT "${value}"`,
    );
  const statesOf = ({ records: all }: { records: { name: string; state: string }[] }) =>
    Object.fromEntries(all.map(({ name, state }) => [name, state]));

  test('shows the records and their states, and sends each person one mail when all are right', async () => {
    const { status, body } = await make();
    expect([status, body]).toMatchObject([
      201,
      {
        container: null,
        recipients: RECIPIENTS,
        createdBy: 'admin',
        completeAt: null,
        mail: { state: 'waiting' },
      },
    ]);
    expect(body.secret).toMatch(/^tgh_[\w-]{43}$/);
    expect(body.url).toBe(`https://api.example.net/handover/${body.secret}`);

    const first = await page(body.secret);
    expect(first.status).toBe(200);
    expect(Object.fromEntries(first.headers)).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-robots-tag': 'noindex, nofollow',
      'content-security-policy': expect.stringMatching(
        /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'/,
      ),
    });
    expect(first.text).toContain('DNS records for Acme &lt;b&gt;&amp; Co&lt;/b&gt;');
    expect(first.text).not.toContain('<script');
    expect(first.text).toContain('0 of 2 records are right');
    expect(first.text).toContain('When all records are right, a mail is sent to 2 people.');
    for (const text of [CUSTOM, origin, '192.0.2.1', `_tagyard-challenge.${ZONE}`])
      expect(first.text).toContain(`<code>${text}</code>`);

    const value = /<code>(tagyard-[\w-]+)<\/code>/.exec(first.text)?.[1] ?? '';
    await knot.updateZone(
      ZONE,
      `add ${CUSTOM}. 60 A 198.51.100.7`,
      'add _tagyard-challenge 60 TXT "tagyard-other"',
    );
    const [proof, host] = [`_tagyard-challenge.${ZONE}`, CUSTOM];
    expect(statesOf(await records(body.secret))).toEqual({ [proof]: 'missing', [host]: 'wrong' });
    await knot.updateZone(ZONE, `del ${CUSTOM}. A`);
    await setAll(value);
    const done = await records(body.secret);
    expect([statesOf(done), done.complete]).toEqual([{ [proof]: 'right', [host]: 'right' }, true]);
    expect((await page(body.secret)).text).toContain('All records are right.');

    await eventually(async () =>
      expect((await listed())[0].mail).toMatchObject({ state: 'sent', attempts: 1 }),
    );
    const mails = await eventually(async () => {
      const all = await smtpd.mails();
      expect(all).toHaveLength(2);
      return all;
    });
    expect(mails[0]).toContain('From: Tagyard <tagyard@example.net>');
    expect(mails[0]).toContain(`${proof}  TXT  ${value}`);
    expect(mails.join()).not.toContain(body.secret);
    expect(mails[0]).toContain('Subject: Your DNS records are set');
    // The client's name is the client's own text.
    expect(mails.join()).not.toContain('Acme');
    // The records are wrong, and then right a second time.
    await knot.updateZone(ZONE, `del ${CUSTOM}. CNAME`);
    expect((await records(body.secret)).complete).toBe(false);
    await setAll(value);
    expect((await records(body.secret)).complete).toBe(true);
    clock.advance(3_600_000);
    expect((await page(body.secret)).text).toContain('A mail was sent to 2 people');
    expect(await smtpd.mails()).toHaveLength(2);
    expect(world.logs.join()).not.toContain(body.secret);
    expect(world.logs.join()).toContain('/handover/tgh_…');
  });

  test('says which record of the client prevents a certificate', async () => {
    const { body } = await make({ recipients: [] });
    await knot.updateZone(ZONE, `add ${CUSTOM}. 60 A 192.0.2.1`, `add ${CUSTOM}. 60 AAAA 2001:db8::9`);
    expect(statesOf(await records(body.secret))[CUSTOM]).toBe('wrong');
    expect((await page(body.secret)).text).toContain('remove the left-over record AAAA 2001:db8::9, or set');
    await knot.updateZone(ZONE, `del ${CUSTOM}. AAAA`);
    const [site] = world.provisioner.sites.values();
    if (site === undefined) throw new Error('the provisioner has no site');
    const reason = `the CAA records of ${ZONE} let only other.example issue certificates`;
    const unknown = { issuer: null, notAfter: null, addresses: null, nextCheck: null };
    site.resources = [
      { target: 'certificate', key: CUSTOM, state: 'pending_certificate', reason, ...unknown },
    ];
    expect(statesOf(await records(body.secret))[CUSTOM]).toBe('right');
    expect((await page(body.secret)).text).toContain(`It has no certificate yet: ${reason}`);
  });

  test('says when the new host serves a domain that still leads elsewhere', async () => {
    const { body } = await make({ recipients: [] });
    await knot.updateZone(ZONE, `add ${CUSTOM}. 60 A 198.51.100.7`);
    const text = 'The new host serves it with a valid certificate already.';
    expect((await page(body.secret)).text).not.toContain(text);
    const [site] = world.provisioner.sites.values();
    if (site === undefined) throw new Error('the provisioner has no site');
    const facts = { issuer: 'R11', notAfter: '2030-05-01T00:00:00.000Z', addresses: null, nextCheck: null };
    site.resources = [{ target: 'certificate', key: CUSTOM, state: 'live', reason: '', ...facts }];
    expect(statesOf(await records(body.secret))[CUSTOM]).toBe('wrong');
    expect((await page(body.secret)).text).toContain(`${text} ${CUSTOM} leads to 198.51.100.7`);
  });

  test('sends the mail after a restart, once the mail server takes it', async () => {
    const { body } = await make({ recipients: RECIPIENTS, container });
    const value = await proofValue(body.secret);
    await smtpd.stop();
    await setAll(value);
    // The records are found without an open page.
    await eventually(async () => {
      clock.advance(30_000);
      expect((await listed())[0].mail).toMatchObject({ error: expect.stringContaining('ECONNREFUSED') });
    });
    expect((await page(body.secret)).text).toContain('A mail to 2 people is on its way.');
    await smtpd.start();
    await restart({ url: smtpd.url, from: SENDER });
    await eventually(async () => {
      clock.advance(60_000);
      expect((await listed())[0].mail).toMatchObject({ state: 'sent', error: null });
    });
    await eventually(async () => expect(await smtpd.mails()).toHaveLength(2));
  });

  test('says that no mail was sent if no recipient’s domain is the client’s any more', async () => {
    const at = `/server-containers/${container}/domains`;
    const other = { domain: 'www.left-tests.example', webTagId: 'GTM-ABC1234' };
    expect((await world.call('POST', at, { as: 'owner', body: other })).status).toBe(200);
    const { body } = await make({ recipients: ['it@left-tests.example'] });
    const value = await proofValue(body.secret);
    expect((await world.call('DELETE', `${at}?domain=${other.domain}`, { as: 'owner' })).status).toBe(200);
    await setAll(value);
    await eventually(async () => {
      clock.advance(30_000);
      expect((await listed())[0].mail).toMatchObject({
        state: 'failed',
        error: expect.stringContaining('proven'),
      });
    });
    expect((await page(body.secret)).text).toContain('No mail was sent.');
    expect(await smtpd.mails()).toEqual([]);
  });

  test('does not repeat a mail that the server may have taken', async () => {
    let contents = 0;
    // It takes the content, and hangs up in place of an answer.
    const rude = createServer((socket) => {
      let isContent = false;
      socket.write('220 rude\r\n');
      socket.on('error', () => socket.destroy());
      socket.on('data', (data) => {
        if (isContent) {
          if (!`${data}`.endsWith('\r\n.\r\n')) return;
          contents += 1;
          socket.destroy();
          return;
        }
        isContent = `${data}`.startsWith('DATA');
        socket.write(isContent ? '354 go on\r\n' : '250 ok\r\n');
      });
    }).listen(0, '127.0.0.1');
    await once(rude, 'listening');
    const { port } = rude.address() as AddressInfo; // listening on TCP
    await restart({ url: `smtp://127.0.0.1:${port}`, from: SENDER });
    const { body } = await make();
    const value = await proofValue(body.secret);
    await setAll(value);
    await records(body.secret);
    await eventually(async () => expect((await listed())[0].mail.state).toBe('unclear'));
    clock.advance(86_400_000);
    expect((await page(body.secret)).text).toContain('A mail may have been sent');
    expect(contents).toBe(1);
    rude.close();
  });

  test('is gone after a revocation and after its end, and then answers like an unknown one', async () => {
    const sendsMail = async () => (await world.call('GET', links(), { as: 'admin' })).body.sendsMail;
    expect(await sendsMail()).toBe(true);
    await restart(null);
    expect(await sendsMail()).toBe(false);
    const soon = new Date(clock.date().getTime() + 3_600_000).toISOString();
    const [short, revoked] = [await make({ expiresAt: soon }), await make({ recipients: RECIPIENTS })];
    expect((await page(short.body.secret)).text).toContain('No mail is sent: no address was named.');
    expect((await page(revoked.body.secret)).text).toContain(
      'No mail is sent: this installation has no mail server.',
    );
    const at = `${links()}/${revoked.body.id}`;
    expect((await world.call('DELETE', `${at}?dryRun=1`, { as: 'admin' })).body.plan.changes).toHaveLength(1);
    expect((await page(revoked.body.secret)).status).toBe(200);
    expect((await world.call('DELETE', at, { as: 'admin' })).status).toBe(204);
    expect(await world.call('DELETE', at, { as: 'admin' })).toMatchObject({
      status: 404,
      body: { code: 'unknown_handover_link' },
    });
    clock.advance(3_600_000);
    const gone = [short.body.secret, revoked.body.secret, 'tgh_x'];
    const pages = await Promise.all(gone.map((secret) => page(secret)));
    expect(pages.map(({ status }) => status)).toEqual([404, 404, 404]);
    expect(new Set(pages.map(({ text }) => text)).size).toBe(1);
    expect(pages[0]?.headers.get('x-robots-tag')).toBe('noindex, nofollow');
    expect((await page('tgh_x', '/records')).status).toBe(404);
    expect(await listed()).toEqual([]);
  });

  test('is made by admins only, for the client’s own containers, and refuses too many requests a minute', async () => {
    expect((await make({}, 'viewer')).status).toBe(403);
    expect((await make({}, 'stranger')).status).toBe(404);
    const other = crypto.randomUUID();
    expect(await make({ container: other })).toMatchObject({
      status: 404,
      body: { code: 'unknown_container' },
    });
    expect((await make({ recipients: ['a@b.example\r\nBcc: c@d.example'] })).status).toBe(400);
    const foreign = await make({ recipients: ['a@sub.acme.example', 'victim@other.example'] });
    expect([foreign.status, foreign.body.errors]).toMatchObject([400, [{ path: 'recipients.1' }]]);
    expect((await make({}, 'admin', '?dryRun=1')).body.plan.changes.length).toBeGreaterThan(0);
    expect(await listed()).toEqual([]);
    const { body } = await make({});
    const statuses = await Promise.all(
      Array.from({ length: 61 }, async () => (await page(body.secret)).status),
    );
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    expect((await page(body.secret, '/records')).status).toBe(429);
  });
});
