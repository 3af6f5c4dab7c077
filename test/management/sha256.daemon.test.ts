import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { provisionedWorld } from '../support/management/provisioned.ts';
import { creation } from '../support/management/world.ts';

const ID = /^[0-9a-f]{64}$/;

test.each([
  ['in place', false],
  ['by a URL', true],
])(
  'a repository with SHA-256 ids works %s: create, plan, change, history, revert, remove',
  async (_, remote) => {
    const { world, daemon, close } = await provisionedWorld(
      { remote },
      { objectFormat: 'sha256', ...(remote ? { pollSeconds: 0.2 } : {}) },
    );
    const git = (...args: string[]) =>
      execFileSync('git', ['-C', daemon.sitesRepo, ...args], { encoding: 'utf8' }).trim();
    const call = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) =>
      world.call(method, path, { as: 'admin', ...(body === undefined ? {} : { body }) });
    try {
      const client = await world.client();
      const { body: made } = await call('POST', '/server-containers', creation(client, 'acme.example'));
      expect(made).toMatchObject({ id: expect.any(String) });
      const path = `/server-containers/${made.id}`;
      const reaches = (expected: object) =>
        eventually(async () => expect((await call('GET', path)).body).toMatchObject(expected));
      await reaches({ status: 'active' });
      await daemon.reaches(made.siteId, 'Ready');
      expect(daemon.loop.status(made.siteId)?.applied).toMatch(ID);
      await call('PATCH', path, { name: 'Second' });
      await reaches({ name: 'Second' });
      await daemon.hasRead(git('rev-parse', 'main'));

      git('branch', 'proposal', 'main~1');
      const plan = await daemon.call('POST', '/plan', { ref: 'proposal' });
      expect(plan).toMatchObject({ status: 200, body: { revision: git('rev-parse', 'proposal') } });
      expect(plan.body.changes).not.toEqual([]);

      const { body } = await call('GET', `${path}/history`);
      expect(body.history).toMatchObject([{ subject: expect.stringMatching(/^Change/) }, {}]);
      const [{ commit }] = body.history;
      expect(commit).toMatch(ID);
      expect(await call('POST', `${path}/revert`, { commit })).toMatchObject({ status: 200 });
      await reaches({ name: made.name });
      const again = await daemon.call('POST', `/sites/${made.siteId}/revert`, {
        revision: git('rev-parse', 'main'),
      });
      expect(again).toMatchObject({ status: 202, body: { revision: expect.stringMatching(ID) } });
      await reaches({ name: 'Second' });

      expect((await call('DELETE', path)).status).toBe(202);
      await daemon.reaches(made.siteId, 'Removed');
      await reaches({ status: 'removed' });
    } finally {
      await close();
    }
  },
);
