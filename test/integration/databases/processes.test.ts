import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { type DatabaseUrls, PostgresqlFixture } from '../../support/management/postgresql.ts';
import { ManagementProcesses, MUTATIONS } from '../../support/management/processes.ts';
import { VerifierFixture } from '../../support/management/verifier.ts';
import { creation, World } from '../../support/management/world.ts';
import { signal } from '../../support/signal.ts';

const PROCESSES = 3;
const ROUNDS = 4;

describeWith('postgresql', 'three processes of the API on one database', () => {
  let postgresql: PostgresqlFixture;
  let world: World;
  let verifier: VerifierFixture;
  let processes: ManagementProcesses;
  let client: string;
  let urls: DatabaseUrls;
  beforeAll(async () => {
    postgresql = await PostgresqlFixture.start();
    const { db, owner, ...connections } = await postgresql.connections();
    urls = connections.urls;
    world = await World.open({ db, owner, ports: { first: 20000, last: 20199 } });
    client = await world.client();
    await world.stop();
    verifier = new VerifierFixture();
    await verifier.start();
    processes = await ManagementProcesses.start(PROCESSES, { world, urls, verifier: verifier.url });
  });
  afterAll(async () => {
    await processes?.stop();
    await verifier?.stop();
    await world?.close();
    await postgresql?.stop();
  });

  let sent = 0;
  const call = (method: string, path: string, as: string, body?: object) =>
    processes.call(sent++, method, path, { as, ...(body === undefined ? {} : { body }) });

  test('run every mutation concurrently with all others of the same container, without failures and deadlocks', async () => {
    const containers = await Promise.all(
      Array.from({ length: 3 }, async (_, index) => {
        const domain = `busy${index}.example`;
        const body = creation(client, domain, { name: domain });
        const made = await call('POST', '/server-containers', 'owner', body);
        expect(made.status).toBe(202);
        const { id } = made.body;
        await eventually(async () =>
          expect((await call('GET', `/server-containers/${id}`, 'owner')).body.status).toBe('active'),
        );
        return { id: String(id), domain };
      }),
    );
    const failed: unknown[] = [];
    const check = async (name: string, asked: ReturnType<typeof call>) => {
      const { status, body } = await asked;
      if (status >= 500) failed.push([name, status, body]);
    };
    const mutations = Object.entries(MUTATIONS);
    for (let round = 0; round < ROUNDS; round += 1) {
      const others = Array.from({ length: PROCESSES }, (_, index) => {
        const domain = `made${round}-${index}.example`;
        return check(
          'create and remove',
          (async () => {
            const body = creation(client, domain, { name: domain });
            const made = await call('POST', '/server-containers', 'owner', body);
            return made.status === 202
              ? await call('DELETE', `/server-containers/${made.body.id}`, 'owner')
              : made;
          })(),
        );
      });
      const members = Array.from({ length: PROCESSES }, () =>
        check('member', call('PUT', `/clients/${client}/members/guest`, 'root', { role: 'viewer' })),
      );
      const changes = containers.flatMap((container) =>
        mutations.flatMap(([name, mutation]) =>
          Array.from({ length: PROCESSES }, () => {
            const [method, path, body] = mutation(container, round);
            return check(name, call(method, `/server-containers/${container.id}${path}`, 'owner', body));
          }),
        ),
      );
      await Promise.all([...others, ...members, ...changes]);
    }
    expect(failed).toEqual([]);
    await Promise.all(
      containers.map(async ({ id }) => {
        const removed = await Promise.all(
          Array.from({ length: PROCESSES }, () => call('DELETE', `/server-containers/${id}`, 'owner')),
        );
        expect(Math.max(...removed.map(({ status }) => status))).toBeLessThan(500);
        await eventually(async () =>
          expect((await call('GET', `/server-containers/${id}`, 'owner')).body.status).toBe('removed'),
        );
      }),
    );
    expect(await processes.stop()).toBe(0);
  });

  test('each listen at the address that is listed with their pid', async () => {
    await processes.stop();
    processes = await ManagementProcesses.start(PROCESSES, { world, urls });
    const alive = async ({ url }: { url: string }) => (await fetch(`${url}/healthz`)).status;
    const left = processes.all();
    expect(left.map(({ url }) => url)).toEqual([...new Set(left.map(({ url }) => url))]);
    while (left.length > 0) {
      expect(await Promise.all(left.map(alive))).toEqual(left.map(() => 200));
      const [{ pid, url } = { pid: 0, url: '' }] = left.splice(0, 1);
      signal(pid, 'SIGKILL');
      await eventually(() => expect(alive({ url })).rejects.toThrow('fetch failed'));
    }
  });
});
