import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { request } from 'undici';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import type { Run } from '../../gitops/cli/instance/run-schema.ts';
import { eventually } from '../support/eventually.ts';
import { startInstance, temporaryHome } from '../support/instance.ts';
import type { Suite } from './bench.ts';
import { residentMiB } from './memory.ts';

const POLL = { timeoutMs: 120_000, intervalMs: 20 };

const container = z.object({
  id: z.string(),
  siteId: z.string(),
  status: z.string(),
  statusReason: z.nullish(z.string()),
  loaderToken: z.string(),
  hostnames: z.object({ edge: z.string() }),
});
type Container = z.infer<typeof container>;

/** The whole instance as a person uses it: start, a container through the API, a commit by plain git, a restart. */
export const instance: Suite = async (bench) => {
  using home = temporaryHome();
  {
    await using first = await startInstance(home.path);
    const { run } = first;
    await bench('start to ready, new home', { unit: 's', run: () => first.readyAfter });
    const created: Container[] = [];
    await bench('POST /server-containers to active', {
      unit: 's',
      times: 3,
      run: () =>
        seconds(async () => {
          created.push(await createContainer(run));
        }),
    });
    const [site] = created;
    if (site === undefined) throw new Error('no container was made');
    await bench('git push to served at the edge', {
      unit: 's',
      times: 3,
      run: () => pushAndAwait(run, site),
    });
    await bench('resident memory, four sites (without Docker’s)', {
      unit: 'MiB',
      run: () => residentMiB(run.pid),
    });
    await bench('SIGTERM to gone', { unit: 's', run: () => seconds(() => first.stop()) });
  }
  await using again = await startInstance(home.path);
  await bench('start to ready, home with four sites', { unit: 's', run: () => again.readyAfter });
};

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1000;
}

/** Creates a site with a domain of its own. The instance has these sites and the demo's one. */
async function createContainer({ management, demo }: Run): Promise<Container> {
  const domain = `bench-${randomBytes(6).toString('hex')}.example`;
  const headers = { authorization: `Bearer ${demo.token}`, 'content-type': 'application/json' };
  const answer = await request(`${management.url}/server-containers`, {
    method: 'POST',
    headers,
    body: JSON.stringify({
      clientId: demo.clientId,
      name: 'Bench',
      domains: [domain],
      webTagIds: { [domain]: 'GTM-BENCH1' },
      containerConfigB64: Buffer.from('id=GTM-BENCH1&env=1&auth=bench').toString('base64'),
    }),
  });
  if (answer.statusCode !== 202) throw new Error(`${answer.statusCode} ${await answer.body.text()}`);
  const { id } = container.parse(await answer.body.json());
  return await eventually(async () => {
    const current = await request(`${management.url}/server-containers/${id}`, { headers });
    const body = container.parse(await current.body.json());
    if (body.status !== 'active') throw new Error(`${body.status} ${body.statusReason ?? ''}`);
    return body;
  }, POLL);
}

/**
 * Commits a new loader token as an operator does. Returns the seconds from the push until the provisioner has applied that
 * commit and the edge answers at the new token. The edge is asked only then: asked earlier, it would remember that
 * there is no such token, for as long as CONFIG_TTL_SECONDS says.
 */
async function pushAndAwait({ sitesRepo, provisioner, edge }: Run, site: Container): Promise<number> {
  const clone = mkdtempSync(join(tmpdir(), 'tagyard-bench-'));
  try {
    const git = execa({ cwd: clone });
    await git`git clone --quiet ${sitesRepo} .`;
    const file = join(clone, `${site.siteId}.yaml`);
    const manifest = parseDocument(readFileSync(file, 'utf8'));
    const token = `lt_${randomBytes(12).toString('hex')}`;
    manifest.set('loaderToken', token);
    writeFileSync(file, manifest.toString());
    await git`git -c user.name=Operator -c user.email=operator@example.net commit --quiet --all --message ${'Rotate the loader token'}`;
    const { stdout: revision } = await git`git rev-parse HEAD`;
    return await seconds(async () => {
      await git`git push --quiet`;
      await eventually(async () => {
        const headers = { 'x-secret': provisioner.secret };
        const answer = await request(`${provisioner.url}/sites/${site.siteId}`, { headers });
        const { applied } = z.object({ applied: z.nullable(z.string()) }).parse(await answer.body.json());
        if (applied !== revision) throw new Error(`applied ${applied}, not ${revision}`);
      }, POLL);
      // The store of the edge may show a write late, as the real one does.
      await eventually(async () => {
        const served = await request(`${edge.url}/l/${token}.js`, { headers: { host: site.hostnames.edge } });
        await served.body.dump();
        if (served.statusCode !== 200) throw new Error(`the edge answered ${served.statusCode}`);
      }, POLL);
    });
  } finally {
    rmSync(clone, { recursive: true, force: true });
  }
}
