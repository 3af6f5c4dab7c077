import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import Docker from 'dockerode';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { firewallNames } from '../../../gitops/appliers/network/rules.ts';
import { runningMaster } from '../../../gitops/appliers/proxy/nginx/process.ts';
import { Home } from '../../../gitops/cli/instance/home.ts';
import { Child } from '../../../gitops/cli/up/child.ts';
import { cloudflareUrl, edgePart } from '../../../gitops/cli/up/parts.ts';
import { openHome } from '../../../gitops/cli/up/up.ts';
import { cloudflareClient } from '../../../gitops/clients/cloudflare.ts';
import { CLI } from '../../support/cli/command.ts';
import { describeWith } from '../../support/components.ts';
import { type Instance, startInstance, temporaryHome } from '../../support/instance.ts';

const ENV = { TAGYARD_PROXY: 'nginx', TAGYARD_CONTAINERS: 'docker', CONTAINER_FIREWALL: 'enforce' };
const ANY_PORTS = { MANAGEMENT_PORT: '0', PROVISIONER_PORT: '0', EDGE_PORT: '0', PROXY_PORT: '0' };
const STRANGER = 'tagyard-purge-stranger';
const ENDLESS = AbortSignal.timeout(600_000);

describeWith(['docker', 'nginx', 'iptables'], 'tagyard down --purge', () => {
  const docker = new Docker();
  const home = temporaryHome();
  let instance: Instance;
  let name: string;
  beforeAll(async () => {
    await docker.createNetwork({
      Name: STRANGER,
      Labels: { 'tagyard.mark': 'tgy1 other home acme 0123abcd' },
    });
    instance = await startInstance(home.path, ENV);
    ({ instance: name } = await new Home(home.path).instance());
  });
  afterAll(async () => {
    await instance?.stop();
    home[Symbol.dispose]();
    await docker.getNetwork(STRANGER).remove();
  });

  const down = async (...args: string[]) =>
    await execa(process.execPath, [CLI, 'down', '--purge', ...args], {
      reject: false,
      stdin: 'ignore',
      env: { ...ENV, TAGYARD_HOME: home.path, AGE_IDENTITY_FILE: '' },
    });
  const containers = async () =>
    (await docker.listContainers({ all: true })).filter(({ Names }) =>
      Names.some((one) => one.startsWith(`/tagyard-${name}-`)),
    );
  const networks = async () => (await docker.listNetworks()).map(({ Name }) => Name);
  const rules = () =>
    execFileSync('iptables', ['-w', '10', '-S'], { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line.includes(firewallNames({ instance: name, host: 'home' }).forward));
  const refs = () =>
    execFileSync('git', ['-C', join(home.path, 'sites.git'), 'for-each-ref', '--format=%(refname)'], {
      encoding: 'utf8',
    });
  const master = async () => await runningMaster(join(home.path, 'provisioner', 'proxy'));

  /** Works with the instance's Cloudflare while the instance itself doesn't run. */
  async function inCloudflare<Result>(
    work: (client: ReturnType<typeof cloudflareClient>, zoneId: string) => Promise<Result>,
  ): Promise<Result> {
    const setup = await openHome(new Home(home.path), { ...ENV, ...ANY_PORTS });
    const edge = new Child(edgePart(setup), () => undefined);
    try {
      const { accountId, zoneId } = await edge.start();
      const client = cloudflareClient({
        url: cloudflareUrl(setup),
        token: setup.instance.cloudflareToken,
        accountId: String(accountId),
        rate: 1_000,
        now: () => Date.now(),
      });
      return await work(client, String(zoneId));
    } finally {
      await edge.stop();
    }
  }

  const objects = () =>
    inCloudflare(async (client, zoneId) => {
      const namespaces = await client.namespaces(ENDLESS);
      const keys = await Promise.all(namespaces.map(({ id }) => client.kvKeys(id, ENDLESS)));
      return {
        records: (await client.dnsRecords(zoneId, {}, ENDLESS)).map((record) => record.name),
        routes: (await client.routes(zoneId, ENDLESS)).map(({ pattern }) => pattern),
        keys: keys.flat().map((key) => key.name),
      };
    });

  test('refuses while the instance runs', async () => {
    const { exitCode, stderr } = await down('--yes');
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining('already runs') });
    expect(await containers()).not.toEqual([]);
  });

  test('lists what it would remove, and removes nothing without an agreement', async () => {
    await instance.stop();
    await inCloudflare(async (client, zoneId) => {
      const record = { name: 'stranger.tagyard.localhost', type: 'CNAME', content: 'shop.example' } as const;
      await client.batchDnsRecords(
        zoneId,
        { deletes: [], puts: [], posts: [{ ...record, proxied: false, comment: '' }] },
        ENDLESS,
      );
    });
    const before = { containers: (await containers()).length, objects: await objects(), refs: refs() };
    expect(before.objects.records).toContain('*.tagyard.localhost');
    expect(before.objects.routes).toEqual(['*.tagyard.localhost/*']);
    expect(before.objects.keys).not.toEqual([]);
    const { exitCode, stdout, stderr } = await down();
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('--yes') });
    for (const target of ['network', 'containers', 'proxy', 'kv', 'route', 'dns']) {
      expect(stdout).toMatch(new RegExp(`^${target} `, 'm'));
    }
    expect(stdout).not.toContain('stranger');
    expect({ containers: (await containers()).length, objects: await objects(), refs: refs() }).toEqual(
      before,
    );
  });

  test('removes all that is the host’s, and nothing of others', async () => {
    expect(rules()).not.toEqual([]);
    const { exitCode, stderr } = await down('--yes');
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(await containers()).toEqual([]);
    expect((await networks()).filter((one) => one.startsWith(`tagyard-${name}-`))).toEqual([]);
    expect(rules()).toEqual([]);
    expect(await master()).toBeNull();
    expect(refs()).not.toContain('refs/tagyard/hosts/');
    expect(refs()).toContain('refs/heads/main');
    expect(await objects()).toEqual({ records: ['stranger.tagyard.localhost'], routes: [], keys: [] });
    expect(await networks()).toContain(STRANGER);
  });
});
