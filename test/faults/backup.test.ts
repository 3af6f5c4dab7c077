import { cp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openSitesRepo } from '../../sites/repo/sites-repo.ts';
import { tagyardHere } from '../support/cli/in-process.ts';
import { eventually } from '../support/eventually.ts';
import { type Instance, startInstance, temporaryHome } from '../support/instance.ts';
import { api, at, ok } from '../support/management/api.ts';

const EMBEDDED = { TAGYARD_PROXY: 'embedded', TAGYARD_CONTAINERS: 'process' };

describe('an instance that is lost with its whole home', () => {
  const scratch = temporaryHome();
  const home = join(scratch.path, 'home');
  const file = join(scratch.path, 'backup.age');
  const env = { TAGYARD_HOME: home };
  let instance: Instance;
  const start = async () => {
    instance = await startInstance(home, EMBEDDED);
    return api(instance.run);
  };
  beforeAll(async () => {
    instance = await startInstance(home, EMBEDDED);
  });
  afterAll(async () => {
    await instance?.stop();
    scratch[Symbol.dispose]();
  });

  test('comes back from the backup and git: the same tokens, certificates and sites, and nothing is deleted', async () => {
    const call = api(instance.run);
    const { clientId } = instance.run.demo;
    const create = async (name: string) => {
      const { body } = await ok(
        call.management.POST('/server-containers', {
          body: {
            clientId,
            name,
            domains: [`${name}.example`],
            webTagIds: { [`${name}.example`]: 'GTM-BACKUP1' },
            containerConfigB64: Buffer.from('id=GTM-BACKUPS&env=1&auth=backup').toString('base64'),
          },
        }),
      );
      return await call.reaches(body.id, 'active');
    };
    const kept = await create('kept-site');
    const token = await ok(
      call.management.POST('/tokens', { body: { name: 'CI', client: clientId, scopes: ['admin'] } }),
    );
    await instance.stop();
    expect(await tagyardHere('', ['backup', file], env)).toMatchObject({ exitCode: 0, stderr: '' });

    // Made after the backup: only git has it.
    await start();
    const later = await create('later-site');
    await instance.stop();
    const certificates = ['ca.pem', 'ca.key', `${kept.hostnames.origin}.pem`];
    const before = await Promise.all(certificates.map((name) => readFile(join(home, 'ca', name), 'utf8')));
    const git = join(scratch.path, 'sites.git');
    await cp(join(home, 'sites.git'), git, { recursive: true });
    await rm(home, { recursive: true });

    const restored = await tagyardHere('', ['restore', file, '--identity', `${home}-backup-identity`], env);
    expect(restored).toMatchObject({ exitCode: 0, stderr: '' });
    // The repository outlives the machine.
    await rm(join(home, 'sites.git'), { recursive: true });
    await cp(git, join(home, 'sites.git'), { recursive: true });
    const again = await start();

    const service = api(instance.run, token.body.value);
    for (const { id, hostnames, domains } of [kept, later]) {
      const now = await again.reaches(id, 'active');
      expect(now.domains).toEqual(domains);
      await eventually(async () =>
        expect((await again.edge(hostnames.edge, 'GET', '/healthy')).status).toBe(200),
      );
      // By the token of before the loss.
      await ok(service.management.GET('/server-containers/{id}', at(id)));
    }
    const after = await Promise.all(certificates.map((name) => readFile(join(home, 'ca', name), 'utf8')));
    expect(after).toEqual(before);
    const repo = await openSitesRepo({ url: join(home, 'sites.git'), cacheDir: scratch.path });
    const sites = (await repo.tree((await repo.head()) ?? '')).files.map(({ site }) => site);
    expect(sites).toEqual(expect.arrayContaining([kept.siteId, later.siteId]));
  });
});
