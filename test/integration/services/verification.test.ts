import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Check, VerificationReport } from '../../../edge/verification/contract.ts';
import { Home } from '../../../gitops/cli/instance/home.ts';
import { eventually } from '../../support/eventually.ts';
import { type Instance, startInstance, temporaryHome } from '../../support/instance.ts';
import { api, at, ok } from '../../support/management/api.ts';

const CLI = fileURLToPath(new URL('../../../gitops/cli.ts', import.meta.url));

const faulty = ({ checks }: VerificationReport) =>
  checks.filter(({ status }) => status === 'failed').map(({ name }) => name);
const find = ({ checks }: VerificationReport, name: Check['name'], subject?: string) =>
  checks.find((check) => check.name === name && (subject === undefined || check.subject === subject));

describe('a verification on a running instance', () => {
  const home = temporaryHome();
  let instance: Instance;
  let call: ReturnType<typeof api>;
  let id: string;

  beforeAll(async () => {
    instance = await startInstance(home.path, {
      TAGYARD_PROXY: 'embedded',
      TAGYARD_CONTAINERS: 'process',
    });
    call = api(instance.run);
    id = instance.run.demo.container;
    await call.reaches(id, 'active');
  });
  afterAll(async () => {
    await instance?.stop();
    home[Symbol.dispose]();
  });

  async function verify() {
    const { status, body } = await ok(call.management.POST('/server-containers/{id}/verify', at(id)));
    return { status, body, report: body.verification as VerificationReport };
  }

  test('finds no problem of a site that has a custom domain, and stores that on the container', async () => {
    await ok(
      call.management.POST('/server-containers/{id}/custom-domains', {
        ...at(id),
        body: {
          domain: 'tags.shop.localhost',
        },
      }),
    );
    const { status, body, report } = await eventually(
      async () => {
        const answer = await verify();
        expect(faulty(answer.report)).toEqual([]);
        return answer;
      },
      { timeoutMs: 60_000 },
    );
    expect(status).toBe(200);
    expect(report).toMatchObject({ status: 'passed' });
    expect(body.container).toMatchObject({ id, status: 'verified', statusReason: null });
    expect(report.checks.filter(({ status }) => status === 'skipped')).toEqual([]);
    expect(find(report, 'cookie_lifetime', 'shop.localhost')).toMatchObject({
      detail: expect.stringMatching(/^full \(by tags\.shop\.localhost\)/),
    });
  });

  const tagyard = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await execa(process.execPath, [CLI, ...args], {
      reject: false,
      env: { TAGYARD_HOME: home.path },
    });
    return { exitCode, stdout, stderr };
  };
  const container = async () => (await ok(call.management.GET('/server-containers/{id}', at(id)))).body;

  test('has the same checks if tagyard doctor makes it, and is not stored then', async () => {
    const { body, report } = await verify();
    const site = body.container.siteId;
    const asked = await tagyard('doctor', site, '--json');
    expect(asked.exitCode).toBe(0);
    const outline = ({ checks }: VerificationReport) =>
      checks.map(({ name, subject, status }) => [name, subject, status]);
    expect(outline(JSON.parse(asked.stdout))).toEqual(outline(report));
    const words = await tagyard('doctor', site);
    expect(words).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('no problem found') });
    for (const { detail } of report.checks) expect(words.stdout).toContain(detail);
    expect(await tagyard('doctor', 'no-such-site')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('no such site'),
    });
    const { body: list } = await ok(call.management.GET('/server-containers/{id}/verifications', at(id)));
    expect(list.verifications[0]?.checkedAt).toBe(report.checkedAt);
  });

  test('finds what was removed at Cloudflare, and passes again once it is restored', async () => {
    const { siteId, loaderToken } = await container();
    // Without the suspension, the provisioner would restore the removed token at once.
    expect(await tagyard('suspend', siteId)).toMatchObject({ exitCode: 0 });
    await eventually(async () => expect(await removeLoaderToken(loaderToken)).toBe(200));
    await eventually(async () =>
      expect(faulty((await verify()).report)).toEqual(['loader', 'loader', 'boot', 'boot']),
    );
    expect(await container()).toMatchObject({ status: 'verification_failed', statusReason: 'checks_failed' });
    const failed = await tagyard('doctor', siteId);
    expect(failed).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('4 of') });
    expect(failed.stdout).toContain('→ Run tagyard plan: the route or the documents of the site in KV');
    expect(await tagyard('resume', siteId)).toMatchObject({ exitCode: 0 });
    await eventually(async () => expect(faulty((await verify()).report)).toEqual([]), { timeoutMs: 60_000 });
    // The host is asked every few seconds whether the site is still suspended.
    await eventually(async () =>
      expect(await container()).toMatchObject({ status: 'verified', statusReason: null }),
    );
  });

  test('uses a host report that only callers with the provisioner’s secret get', async () => {
    const { siteId } = await container();
    const path = `/sites/${siteId}/host-report`;
    expect(await call.provisioner('GET', path)).toMatchObject({
      status: 200,
      body: { host: 'home', previews: { count: 1 }, config: { id: 'GTM-SRVDEMO1', problem: null } },
    });
    expect((await call.provisioner('GET', '/sites/absent/host-report')).status).toBe(404);
    expect((await fetch(`${instance.run.provisioner.url}${path}`)).status).toBe(401);
  });

  /** Through Cloudflare’s own API, as its dashboard does. */
  async function removeLoaderToken(token: string): Promise<number> {
    const { url, accountId } = instance.run.cloudflare;
    const { cloudflareToken } = await new Home(home.path).instance();
    const kv = `${url}/accounts/${accountId}/storage/kv/namespaces`;
    const headers = { authorization: `Bearer ${cloudflareToken}` };
    const list = z.object({ result: z.array(z.object({ id: z.string(), title: z.string() })) });
    const { result } = list.parse(await (await fetch(kv, { headers })).json());
    const namespace = result.find(({ title }) => title.endsWith('LOADER_TOKEN_MAP'));
    return (await fetch(`${kv}/${namespace?.id}/values/${token}`, { method: 'DELETE', headers })).status;
  }
});
