import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
let count = 0;
let id: string;
let site: string;
beforeAll(async () => {
  world = await World.open();
  client = await world.client();
});
afterAll(() => world.close());
beforeEach(async () => {
  count += 1;
  ({ id, siteId: site } = await create(`plain${count}.example`));
});

async function create(domain: string) {
  const body = creation(client, domain, { name: domain });
  const made = (await world.call('POST', '/server-containers', { as: 'owner', body })).body;
  await shows({ status: 'active' }, made.id);
  return made;
}
const shows = (expected: object, which = id, timeoutMs = 20_000) =>
  eventually(
    async () => {
      const { body } = await world.call('GET', `/server-containers/${which}`, { as: 'viewer' });
      expect(body).toMatchObject(expected);
    },
    { timeoutMs },
  );
const change = (method: 'PATCH' | 'POST' | 'DELETE', path: string, body?: object, which = id) =>
  world.call(method, `/server-containers/${which}${path}`, {
    as: 'owner',
    ...(body === undefined ? {} : { body }),
  });
const commit = (edit: (text: string) => string | null, which = site) =>
  world.repo.commit({
    site: which,
    subject: 'By hand',
    author: { name: 'Olga', email: 'olga@example.test' },
    trailers: {},
    edit: (text) => edit(text ?? ''),
  });

/** Makes the database refuse rows of a table while the work runs. */
async function whileRefused(table: string, condition: string, work: () => Promise<void>): Promise<void> {
  const { owner } = world;
  await sql
    .raw(
      `create function refuse() returns trigger language plpgsql as $$
        begin if ${condition} then raise exception 'refused by the test'; end if; return new; end $$`,
    )
    .execute(owner);
  await sql
    .raw(`create trigger refuse before insert or update on ${table} for each row execute function refuse()`)
    .execute(owner);
  try {
    await work();
  } finally {
    await sql.raw('drop function refuse cascade').execute(owner);
  }
}

test('a change that can’t be projected fails and keeps its names; it is projected later without a new commit', async () => {
  const rival = await create(`rival.plain${count}.example`);
  const name = `m.plain${count}.example`;
  await whileRefused('containers', `new.manifest->>'name' = 'Refused'`, async () => {
    const patched = await change('PATCH', '', { name: 'Refused' });
    expect([patched.status, patched.body.code]).toEqual([503, 'projection_failed']);
    const added = await change('POST', '/custom-domains', { domain: name });
    expect(added.status).toBe(503);
    // The name stays claimed: another site doesn’t get it.
    const taken = await change('POST', '/custom-domains', { domain: name }, rival.id);
    expect([taken.status, taken.body.code]).toEqual([409, 'domain_in_use']);
    // Other sites are projected as before.
    expect((await change('PATCH', '', { name: 'Rival' }, rival.id)).status).toBe(200);
    expect(await world.file(site)).toContain(name);
  });
  await shows({ name: 'Refused', customDomains: [name] });
});

test('changes of other sites don’t postpone the next retry, however many there are', async () => {
  const rival = await create(`busy.plain${count}.example`);
  await world.stop();
  await world.start({ follow: false });
  const refusals = () => world.logs.filter((line) => line.includes('could not be projected')).length;
  const stop = new AbortController();
  let following: Promise<void> | undefined;
  await whileRefused('containers', `new.manifest->>'name' = 'Refused'`, async () => {
    expect((await change('PATCH', '', { name: 'Refused' })).status).toBe(503);
    for (let edit = 0; edit < 12; edit += 1) {
      expect((await change('PATCH', '', { name: `Busy ${edit}` }, rival.id)).status).toBe(200);
    }
    const before = refusals();
    following = world.management?.follow(stop.signal);
    await eventually(() => expect(refusals()).toBeGreaterThan(before));
  });
  await shows({ name: 'Refused' }, id, 10_000);
  stop.abort();
  await following;
  await world.stop();
  await world.start();
});

test('a removal that can’t be projected delays no other removal, and is projected later', async () => {
  const other = await create(`other${count}.example`);
  const refused = `new.kind = 'deprovision' and new.container_id = '${id}'`;
  await whileRefused('operations', refused, async () => {
    await commit(() => null);
    await commit(() => null, other.siteId);
    await shows({ status: 'removed' }, other.id);
    await shows({ status: 'active' });
  });
  await shows({ status: 'removed' });
});

test('a commit that was made before a creation had settled is projected afterwards', async () => {
  const held = Promise.withResolvers<void>();
  world.provisioner.gate = held.promise;
  const domain = `early${count}.example`;
  const body = creation(client, domain, { name: domain });
  const creating = world.call('POST', '/server-containers', { as: 'owner', body });
  const early = domain.replace('.', '-');
  await eventually(() =>
    expect(world.provisioner.calls.map(({ body: sent }) => sent)).toContainEqual(
      expect.objectContaining({ site: early }),
    ),
  );
  await commit((text) => text.replace(/^name: .*/m, 'name: By hand'), early);
  held.resolve();
  world.provisioner.gate = Promise.resolve();
  const made = await creating;
  expect(made.status).toBe(202);
  await shows({ name: 'By hand' }, made.body.id);
});

test('a listing that is older than a creation removes nothing', async () => {
  const held = Promise.withResolvers<void>();
  const tree = world.repo.tree.bind(world.repo);
  let listings = 0;
  world.repo.tree = async (revision) => {
    const listed = await tree(revision);
    listings += 1;
    if (listings === 1) await held.promise;
    return listed;
  };
  await commit((text) => text.replace(/^name: .*/m, 'name: By hand'));
  await eventually(() => expect(listings).toBe(1));
  const domain = `during${count}.example`;
  const body = creation(client, domain, { name: domain });
  const made = (await world.call('POST', '/server-containers', { as: 'owner', body })).body;
  await shows({ status: 'active' }, made.id);
  held.resolve();
  await shows({ name: 'By hand' });
  world.repo.tree = tree;
  const { body: seen } = await world.call('GET', `/server-containers/${made.id}/events`, { as: 'viewer' });
  const statuses = seen.events.filter(({ kind }: { kind: string }) => kind === 'status');
  expect(statuses.map(({ status }: { status: string }) => status)).toEqual(['provisioning', 'active']);
});

test('a site whose file git deletes and brings back during a pass is not removed', async () => {
  const text = (await world.file(site)) ?? '';
  const tree = world.repo.tree.bind(world.repo);
  let restored = false;
  world.repo.tree = async (revision) => {
    const listed = await tree(revision);
    if (!restored && !listed.files.some((blob) => blob.site === site)) {
      restored = true;
      await commit(() => text);
    }
    return listed;
  };
  await commit(() => null);
  await eventually(() => expect(restored).toBe(true));
  expect((await change('PATCH', '', { name: 'Afterwards' })).status).toBe(200);
  world.repo.tree = tree;
  const { body } = await world.call('GET', `/server-containers/${id}/events`, { as: 'viewer' });
  expect(body.events.map(({ status }: { status: string }) => status)).not.toContain('deprovisioning');
});

test.each([
  ['hidden characters', '"Acme \\u202epohS"', 'Acme \u202epohS'],
  ['half a surrogate pair, which is replaced,', '"Acme \\ud800"', 'Acme \ufffd'],
])('a name in git with %s is still read, with a warning', async (_what, yaml, name) => {
  await commit((text) => text.replace(/^name: .*/m, `name: ${yaml}`));
  await shows({ name, statusReason: null });
  const warnings = world.logs.filter((line) => line.includes('a manifest is accepted as it is'));
  expect(warnings.some((line) => line.includes(site))).toBe(true);
  const domain = `more${count}.plain${count}.example`;
  expect((await change('POST', '/custom-domains', { domain })).status).toBe(200);
  await shows({ name, customDomains: [domain] });
});

test('names of callers may contain any character; the commit has plain text', async () => {
  const token = await world.issuer.token('owner', {
    name: 'A\0da\ud800\u202e',
    email: 'a\0da@example.test\nx',
  });
  const domain = `named${count}.example`;
  const body = creation(client, domain, { name: domain });
  const made = await world.call('POST', '/server-containers', { token, body });
  expect(made.status).toBe(202);
  await shows({ status: 'active' }, made.body.id);
  const [entry] = await world.repo.history(made.body.siteId, 1);
  expect(entry).toMatchObject({ author: 'A da\ufffd', email: 'ada@example.testx' });
  const unfit = await world.issuer.token('own\0er');
  expect((await world.call('GET', '/server-containers', { token: unfit })).status).toBe(401);
});

test('a host’s text that no column can store is recorded without the bad characters, and delays no other site', async () => {
  const next = await create(`next${count}.example`);
  for (const one of [site, next.siteId]) {
    world.provisioner.sites.set(one, { reason: 'Failed', message: `${one}: a\0b\ud800\nc` });
  }
  await shows({ health: 'degraded', statusDetail: `Failed: ${site}: a b\ufffd\nc` });
  await shows({ health: 'degraded', statusDetail: `Failed: ${next.siteId}: a b\ufffd\nc` }, next.id);
});
