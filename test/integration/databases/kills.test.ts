import getPort from 'get-port';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { z } from 'zod';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { AUDIENCE, ISSUER } from '../../support/management/issuer.ts';
import { Mortals } from '../../support/management/mortal.ts';
import type { mortalReport, mortalTask } from '../../support/management/mortal-settings.ts';
import { PostgresqlFixture } from '../../support/management/postgresql.ts';
import { creation, SECRET, World } from '../../support/management/world.ts';

/** Enough for some twenty processes one after another on a busy machine. */
const TIMEOUT_MS = 900_000;

type Task = z.input<typeof mortalTask>;
type Report = z.output<typeof mortalReport>;

describeWith('postgresql', 'if management is killed before or after any effect,', () => {
  let postgresql: PostgresqlFixture;
  let world: World;
  let client: string;
  let mortals: Mortals;
  let nowhere: Mortals;
  beforeAll(async () => {
    postgresql = await PostgresqlFixture.start();
  });
  afterAll(() => postgresql?.stop());
  // Each case has a new database and world: else every process would check again what earlier cases have made.
  beforeEach(async () => {
    const { urls, db, owner } = await postgresql.connections();
    world = await World.open({ db, owner, ports: { first: 20000, last: 20999 } });
    client = await world.client();
    await world.stop();
    const given = {
      databaseUrl: urls.api,
      sitesRepo: world.bare,
      cacheDir: world.dir,
      secret: SECRET,
      jwksUrl: world.issuer.jwksUrl,
      issuer: ISSUER,
      audience: AUDIENCE,
      settings: world.settings,
      answerMs: 500,
    };
    mortals = new Mortals({ ...given, provisionerUrl: world.provisioner.url });
    nowhere = new Mortals({
      ...given,
      provisionerUrl: `http://127.0.0.1:${await getPort({ host: '127.0.0.1' })}`,
    });
  });
  afterEach(async () => {
    mortals?.end();
    nowhere?.end();
    await world?.close();
  });

  const running = () =>
    world.owner.selectFrom('operations').select('id').where('status', '=', 'running').execute();
  const idle = async () => (await running()).length === 0;

  /**
   * No operation is running, nothing is leased to a container that does not exist, and every container has all that it
   * needs.
   */
  async function consistent(domain: string): Promise<{ id: string; status: string } | null> {
    const { owner, provisioner, repo } = world;
    expect(await running()).toEqual([]);
    const held = await owner
      .selectFrom('operations')
      .select('id')
      .where('manifest', 'is not', null)
      .execute();
    expect(held).toEqual([]);
    const all = await owner
      .selectFrom('containers')
      .select(['id', 'site_id', 'status', 'manifest'])
      .execute();
    const standing = all.filter(({ status }) => status === 'active');
    const ids = standing.map(({ id }) => id).sort();
    const leases = await owner
      .selectFrom('port_pool')
      .select('leased_by')
      .where('leased_by', 'is not', null)
      .execute();
    expect(leases.map(({ leased_by }) => leased_by).sort()).toEqual(ids);
    const claims = await owner.selectFrom('domain_claims').select('container_id').execute();
    expect(claims.map(({ container_id }) => container_id).sort()).toEqual(ids);
    const head = await repo.head();
    const files = head === null ? [] : await repo.read(head);
    const wanted = files.filter(({ text }) => text.includes('state: present')).map(({ site }) => site);
    const sites = standing.map(({ site_id }) => site_id).sort();
    expect(wanted.sort()).toEqual(sites);
    const up = [...provisioner.sites].filter(([, { reason }]) => reason === 'Ready').map(([site]) => site);
    expect(up.sort()).toEqual(sites);
    const mine = all.filter(({ manifest }) => manifest.domains[0]?.domain === domain);
    expect(mine.length).toBeLessThan(2);
    const [one] = mine;
    if (one === undefined) return null;
    expect(one.status).toBeOneOf(['active', 'failed', 'removed']);
    const history = (await repo.history(one.site_id)).map(({ subject }) => subject.split(' ')[0]);
    expect(history).toEqual([...new Set(history)]);
    return one;
  }

  const as = async (role: string) => ({ authorization: `Bearer ${await world.issuer.token(role)}` });
  const key = (domain: string) => ({ 'idempotency-key': domain });

  async function finishedBy(domain: string) {
    await world.start();
    try {
      return await eventually(() => consistent(domain));
    } finally {
      await world.stop();
    }
  }

  async function create(domain: string, headers: Record<string, string> = {}) {
    const body = creation(client, domain, { name: domain });
    return await world.call('POST', '/server-containers', { as: 'owner', body, headers });
  }

  /** Repeats the request: the answer is the same container or, after a failure, a new one with the same domain. */
  async function triedAgain(domain: string, before: { id: string; status: string } | null): Promise<void> {
    await world.start();
    try {
      let answer = await create(domain, key(domain));
      if (before?.status === 'active') expect(answer.body.id).toBe(before.id);
      if (answer.status === 502 || before?.status === 'failed') answer = await create(domain);
      expect(answer.status).toBe(202);
      await eventually(async () => {
        const { body } = await world.call('GET', `/server-containers?domain=${domain}`, { as: 'owner' });
        expect(body.containers).toMatchObject([{ status: 'active' }]);
      });
    } finally {
      await world.stop();
    }
  }

  /** Runs once without a kill to count the boundaries, then once for each boundary, killed there. */
  async function exhaustively(
    run: (end: Task['end'], domain: string) => Promise<Report | null>,
    name: string,
    after: (domain: string) => Promise<void>,
  ): Promise<{ whole: Report; killed: string[] }> {
    const whole = await run(null, `${name}-whole.example`);
    if (whole === null) throw new Error('the process that should have lived was killed');
    const killed: string[] = [];
    let runs = 0;
    for (const [boundary, count] of Object.entries(whole.passed)) {
      for (let index = 1; index <= count; index += 1) {
        const domain = `${name}-${++runs}.example`;
        // Background work may need fewer passes this time; then the boundary is not reached.
        if ((await run({ name: boundary, index }, domain)) === null) killed.push(boundary);
        await after(domain);
      }
    }
    return { whole, killed };
  }

  test.each<[string, { status: number; ends: string; sees: string[] }, () => void, () => Mortals]>([
    [
      'that succeeds',
      { status: 202, ends: 'active', sees: ['after provision'] },
      () => undefined,
      () => mortals,
    ],
    [
      'that the provisioner refuses',
      { status: 502, ends: 'failed', sees: [] },
      () => {
        world.provisioner.refuse = { status: 422, code: 'wrong_host' };
      },
      () => mortals,
    ],
    [
      'that can’t reach the provisioner',
      { status: 502, ends: 'failed', sees: [] },
      () => undefined,
      () => nowhere,
    ],
    [
      'that the provisioner doesn’t answer',
      { status: 202, ends: 'active', sees: ['after provision'] },
      () => {
        world.provisioner.unanswered = 1;
      },
      () => mortals,
    ],
    [
      'that fails on the host',
      { status: 202, ends: 'failed', sees: ['after provision', 'before deprovision', 'after deprovision'] },
      () => {
        world.provisioner.fails = 'the image can’t be pulled';
      },
      () => mortals,
    ],
  ])(
    'a creation %s is finished or rolled back, leaks nothing, and can be tried again',
    async (name, expected, arrange, processes) => {
      const run = async (end: Task['end'], domain: string) => {
        arrange();
        const body = creation(client, domain, { name: domain });
        const headers = { ...(await as('owner')), ...key(domain) };
        const report = await processes().run(
          { end, method: 'POST', url: '/server-containers', headers, body },
          idle,
        );
        world.provisioner.refuse = null;
        world.provisioner.fails = null;
        world.provisioner.unanswered = 0;
        return report;
      };
      const { whole, killed } = await exhaustively(run, name.replace(/[^a-z]/g, ''), async (domain) =>
        triedAgain(domain, await finishedBy(domain)),
      );
      expect(whole.status).toBe(expected.status);
      expect(killed).toEqual(
        expect.arrayContaining([
          'before git commit',
          'after git commit',
          'before provision',
          ...expected.sees,
        ]),
      );
    },
    TIMEOUT_MS,
  );

  test(
    'a removal is finished and gives everything back, or changes nothing',
    async () => {
      const run = async (end: Task['end'], domain: string) => {
        await world.start();
        const { body } = await create(domain);
        await world.stop();
        await finishedBy(domain);
        return await mortals.run(
          { end, method: 'DELETE', url: `/server-containers/${body.id}`, headers: await as('owner') },
          async () => (await idle()) && (await statusOf(body.id)) === 'removed',
        );
      };
      const { whole, killed } = await exhaustively(run, 'removal', async (domain) => {
        expect((await finishedBy(domain))?.status).toBeOneOf(['active', 'removed']);
      });
      expect(whole.status).toBe(202);
      expect(killed).toEqual(
        expect.arrayContaining(['before git commit', 'after git commit', 'after deprovision']),
      );
    },
    TIMEOUT_MS,
  );

  async function statusOf(id: string): Promise<string | undefined> {
    const row = await world.owner
      .selectFrom('containers')
      .select('status')
      .where('id', '=', id)
      .executeTakeFirst();
    return row?.status;
  }
});
