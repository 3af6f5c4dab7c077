import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { tagyardHere } from '../support/cli/in-process.ts';
import { eventually } from '../support/eventually.ts';
import { startInstance } from '../support/instance.ts';
import { api } from '../support/management/api.ts';

/**
 * A folder for each earlier version, made by it: an instance of `npm start` with a second container was stopped and
 * backed up (`backup.age`, `identity`), and the backup has no `provisioner/state.json`, which lies beside it.
 */
const FIXTURES = fileURLToPath(new URL('fixtures/', import.meta.url));

test.each(await readdir(FIXTURES))(
  'an installation of %s goes on with this version',
  async (version) => {
    const made = (name: string) => join(FIXTURES, version, name);
    const scratch = await mkdtemp(join(tmpdir(), 'tagyard-upgrade-'));
    const home = join(scratch, 'home');
    try {
      const env = { TAGYARD_HOME: home };
      const restored = await tagyardHere(
        '',
        ['restore', made('backup.age'), '--identity', made('identity')],
        env,
      );
      expect(restored).toMatchObject({ exitCode: 0, stderr: '' });
      await cp(made('state.json'), join(home, 'provisioner', 'state.json'));
      await using instance = await startInstance(home, {
        ...{ TAGYARD_PROXY: 'embedded', TAGYARD_CONTAINERS: 'process' },
      });
      const call = api(instance.run);
      const { data } = await call.management.GET('/server-containers', {});
      expect(data?.containers.map(({ siteId }) => siteId).sort()).toEqual(['acme-shop', 'demo-shop']);
      for (const { id } of data?.containers ?? []) {
        const { hostnames } = await call.reaches(id, 'active');
        await eventually(async () =>
          expect((await call.edge(hostnames.edge, 'GET', '/healthy')).status).toBe(200),
        );
      }
      const { stdout } = await tagyardHere('', ['plan', '--json'], { ...env, INFRA_PROVISIONER_URL: '' });
      expect(JSON.parse(stdout).changes.filter(({ op }: { op: string }) => op === 'delete')).toEqual([]);
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  },
  300_000,
);
