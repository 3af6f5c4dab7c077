import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { claimedNames } from '../../../management/records/sites.repository.ts';
import { parseManifest } from '../../../sites/manifest/load.ts';
import { SitesRepoError } from '../../../sites/repo/errors.ts';
import type { SitesRepo } from '../../../sites/repo/sites-repo.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { PostgresqlFixture } from '../../support/management/postgresql.ts';
import { type Answer, creation, World } from '../../support/management/world.ts';

type Commit = SitesRepo['commit'];
const NAME = 'shop.elsewhere.example';

describeWith('postgresql', 'a domain that several containers claim at once', () => {
  let postgresql: PostgresqlFixture;
  beforeAll(async () => {
    postgresql = await PostgresqlFixture.start();
  });
  afterAll(() => postgresql?.stop());

  let world: World;
  /** Two containers of one client. */
  let ours: string;
  let theirs: string;
  beforeEach(async () => {
    world = await World.open(await postgresql.connections());
    const client = await world.client();
    const create = async (domain: string) => {
      const body = creation(client, domain, { name: domain });
      const { body: made } = await world.call('POST', '/server-containers', { as: 'owner', body });
      return await becomes(made.id, 'active');
    };
    ours = await create('ours.example');
    theirs = await create('theirs.example');
  });
  /** Releases what a failed test still holds. */
  const releases: (() => void)[] = [];
  afterEach(async () => {
    for (const release of releases.splice(0)) release();
    await world?.close();
  });

  const becomes = (id: string, status: string): Promise<string> =>
    eventually(async () => {
      const { body } = await world.call('GET', `/server-containers/${id}`, { as: 'owner' });
      expect(body.status).toBe(status);
      return id;
    });
  const add = (id: string, domain = NAME): Promise<Answer> =>
    world.call('POST', `/server-containers/${id}/domains`, {
      as: 'owner',
      body: { domain, webTagId: 'GTM-ABC1234' },
    });
  const remove = (id: string, domain = NAME): Promise<Answer> =>
    world.call('DELETE', `/server-containers/${id}/domains?domain=${domain}`, { as: 'owner' });
  /** This host is refused after its name was claimed, because it isn't first-party to any domain of the container. */
  const addForeignHost = (id: string): Promise<Answer> =>
    world.call('POST', `/server-containers/${id}/custom-domains`, { as: 'owner', body: { domain: NAME } });
  const result = ({ status, body }: Answer) => [status, body.code ?? null];

  /** Wraps each commit that the API makes in the repository. */
  function around(wrap: (commit: Commit, edit: Parameters<Commit>[0]) => ReturnType<Commit>): void {
    const commit: Commit = world.repo.commit.bind(world.repo);
    world.repo.commit = (edit) => wrap(commit, edit);
  }

  /** Holds commits whose subject starts with this text; `reached` resolves at the first one. */
  function hold(subject: string): { reached: Promise<void>; release(): void } {
    const reached = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    releases.push(held.resolve);
    around(async (commit, edit) => {
      if (edit.subject.startsWith(subject)) {
        reached.resolve();
        await held.promise;
      }
      return await commit(edit);
    });
    return { reached: reached.promise, release: held.resolve };
  }

  /**
   * Checks that exactly the containers that have a name in git hold its claim, and that no change of a claim is open.
   * Returns the containers by name.
   */
  async function consistent(): Promise<Record<string, string>> {
    const files = await world.repo.read((await world.repo.head()) ?? '');
    const inGit = files.flatMap(({ text, path }) => {
      const parsed = parseManifest(text, path);
      if (!parsed.ok) throw new Error(`${path} can't be read`);
      return claimedNames(parsed.manifest).map((name): [string, string] => [name, parsed.manifest.container]);
    });
    const claims = await world.owner.selectFrom('domain_claims').selectAll().execute();
    expect(claims.flatMap(({ changes }) => changes)).toEqual([]);
    expect(claims.map(({ domain, container_id }) => [domain, container_id]).sort()).toEqual(inGit.sort());
    return Object.fromEntries(inGit);
  }

  test('belongs to one client if two clients ask for its registrable domain at once', async () => {
    const { body: rival } = await world.call('POST', '/clients', {
      as: 'root',
      body: { name: 'Rival', members: [{ subject: 'rival', role: 'owner' }] },
    });
    const own = creation(rival.id, 'rival.example', { name: 'rival' });
    const { body: made } = await world.call('POST', '/server-containers', { as: 'rival', body: own });
    const addAs = (as: string, id: string, domain: string) =>
      world.call('POST', `/server-containers/${id}/domains`, {
        as,
        body: { domain, webTagId: 'GTM-ABC1234' },
      });
    await eventually(async () => {
      const { body } = await world.call('GET', `/server-containers/${made.id}`, { as: 'rival' });
      expect(body.status).toBe('active');
    });
    const wanted = Array.from({ length: 8 }, (_, number) => `wanted-${number}.example`);
    const answers = await Promise.all(
      wanted.map((domain) =>
        Promise.all([
          addAs('owner', ours, `a.${domain}`),
          addAs('rival', made.id, domain),
          addAs('owner', theirs, `b.${domain}`),
        ]),
      ),
    );
    for (const [first, second, third] of answers) {
      const isRivals = second.status === 200;
      expect([first, second, third].map(result)).toEqual([
        isRivals ? [409, 'domain_in_use'] : [200, null],
        isRivals ? [200, null] : [409, 'domain_in_use'],
        isRivals ? [409, 'domain_in_use'] : [200, null],
      ]);
    }
    await consistent();
  });

  test('is kept while another change of the same container fails', async () => {
    const held = hold('Add domain');
    const adding = add(ours);
    await held.reached;
    expect(result(await addForeignHost(ours))).toEqual([422, 'foreign_domain']);
    expect(result(await add(theirs))).toEqual([409, 'domain_in_use']);
    held.release();
    expect(result(await adding)).toEqual([200, null]);
    expect((await consistent())[NAME]).toBe(ours);
  });

  test('is kept for a change that adds it, while another one of the same container removes it', async () => {
    expect(result(await add(ours))).toEqual([200, null]);
    const held = hold('Change domain');
    const adding = add(ours);
    await held.reached;
    expect(result(await remove(ours))).toEqual([200, null]);
    expect(result(await add(theirs))).toEqual([409, 'domain_in_use']);
    held.release();
    expect(result(await adding)).toEqual([200, null]);
    expect((await consistent())[NAME]).toBe(ours);
  });

  test('is free at once where the change that claimed it was refused', async () => {
    expect(result(await addForeignHost(ours))).toEqual([422, 'foreign_domain']);
    expect(result(await add(theirs))).toEqual([200, null]);
    expect((await consistent())[NAME]).toBe(theirs);
  });

  test('is kept where the repository failed and the commit was made nevertheless', async () => {
    around(async (commit, edit) => {
      await commit(edit);
      throw new SitesRepoError('the answer to the push was lost');
    });
    expect(result(await add(ours))).toEqual([503, 'sites_repo_unavailable']);
    expect(result(await add(theirs))).toEqual([409, 'domain_in_use']);
    await eventually(async () => {
      const { body } = await world.call('GET', `/server-containers/${ours}`, { as: 'owner' });
      expect(body.domains.map(({ domain }: { domain: string }) => domain)).toContain(NAME);
    });
    await passed(11);
    await eventually(async () => expect((await consistent())[NAME]).toBe(ours));
  });

  test('is released after a while where the repository failed and no commit was made', async () => {
    around(async () => {
      throw new SitesRepoError('no route to the repository');
    });
    expect(result(await add(ours))).toEqual([503, 'sites_repo_unavailable']);
    expect(result(await add(theirs))).toEqual([409, 'domain_in_use']);
    await passed(11);
    await eventually(async () => expect(Object.keys(await consistent())).not.toContain(NAME));
  });

  /** Sets the claims' times back in the database. */
  async function passed(minutes: number): Promise<void> {
    await sql`update domain_claims set changed_at = changed_at - make_interval(mins => ${minutes}::integer)`.execute(
      world.owner,
    );
  }

  test('has one holder, the one that git names, after any changes in any order', async () => {
    const names = ['a.example', 'b.example', NAME];
    const requests = Array.from({ length: 36 }, (_, index) => {
      const container = index % 2 === 0 ? ours : theirs;
      const name = names[index % 3] ?? NAME;
      if (index % 4 === 3) return remove(container, name);
      return index % 9 === 5 ? addForeignHost(container) : add(container, name);
    });
    const answers = await Promise.all(requests);
    expect(answers.map(({ status }) => status)).toEqual(
      answers.map(() => expect.toBeOneOf([200, 404, 409, 422])),
    );
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(3);
    await eventually(() => consistent());
  });
});
