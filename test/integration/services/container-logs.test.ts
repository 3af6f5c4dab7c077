import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type Instance, startInstance, temporaryHome } from '../../support/instance.ts';
import { api, at, ok } from '../../support/management/api.ts';
import { listen } from '../../support/management/listen.ts';
import { signal } from '../../support/signal.ts';

const CONFIG = Buffer.from('id=GTM-LOGSSRV&env=3&auth=logs-auth-s3cret').toString('base64');
const PERSONAL = ['ada%40example.com', 'ada@example.com', 'GA1.1.555666777.888', '203.0.113.77', 'Lovelace'];
const POLICY = `gtag('policy', 'set_cookies', (container, permission, data) => data.name !== 'FPID');`;

const home = temporaryHome();
let instance: Instance;
let call: ReturnType<typeof api>;
let id: string;
let site: string;
let host: string;

beforeAll(async () => {
  instance = await startInstance(home.path, { TAGYARD_PROXY: 'embedded', TAGYARD_CONTAINERS: 'process' });
  call = api(instance.run);
  const { clientId } = instance.run.demo;
  const { body } = await ok(
    call.management.POST('/server-containers', {
      body: {
        ...{ clientId, name: 'Logs Store', domains: ['logs.localhost'], containerConfigB64: CONFIG },
        webTagIds: { 'logs.localhost': 'GTM-LOGS123' },
      },
    }),
  );
  id = body.id;
  site = body.siteId;
  host = body.hostnames.edge;
  await call.reaches(id, 'active');
  await eventually(async () => expect((await call.edge(host, 'GET', '/healthy')).status).toBe(200));
}, 120_000);
afterAll(async () => {
  await instance?.stop();
  home[Symbol.dispose]();
});

/** Sends a hit and returns the edge's id of the request. */
const hit = async (event: string): Promise<string> => {
  const [mail, plain, client, address, name] = PERSONAL;
  const query = `v=2&tid=G-LOGS&cid=${client}&en=${event}&uip=${address}&ep.mail=${mail}`;
  const headers = {
    'content-type': 'text/plain',
    'trace-id': randomUUID(),
    'x-request-id': 'ada@example.com',
  };
  const sent = await call.edge(
    host,
    'POST',
    `/g/collect?${query}`,
    `ep.name=${name}&ep.mail=${plain}`,
    headers,
  );
  expect(sent.status).toBe(200);
  return String(sent.headers['x-tagyard-request-id']);
};
const logs = async (query = {}) =>
  (
    await ok(
      call.management.GET('/server-containers/{id}/container-logs', { params: { path: { id }, query } }),
    )
  ).body.logs;
/** The content of all files in the provisioner's folder of containers' lines. */
const stored = () => {
  const folder = join(home.path, 'provisioner', 'container-logs');
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.tmp')) // of a write that is under way
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .join('\n');
};

test('a tag’s log line names the request that fired it, live and in a search, and nothing personal', async () => {
  const stream = await listen(
    `${instance.run.management.url}/server-containers/${id}/container-logs/live?kind=tag`,
    {
      authorization: `Bearer ${instance.run.demo.token}`,
    },
  );
  await eventually(() => expect(stream.text()).toContain('retry'));
  const requestId = await hit('purchase');
  await hit('page_view');
  const said = await eventually(async () => {
    const found = await logs({ requestId });
    expect(found).toHaveLength(1);
    return found[0];
  });
  expect(said).toMatchObject({
    ...{ kind: 'tag', level: 'info', stream: 'stdout', source: 'processing/0' },
    ...{ requestId, name: 'GA4 client', type: 'Request', eventName: 'purchase' },
    ...{ requestMethod: 'POST', requestUrl: '/g/collect' },
  });
  await eventually(async () => {
    const { body } = await ok(
      call.management.GET('/server-containers/{id}/requests', {
        params: { path: { id }, query: { requestId } },
      }),
    );
    expect(body.requests).toMatchObject([{ requestId, events: { purchase: 1 } }]);
  });
  await eventually(() => expect(stream.text()).toContain('"eventName":"page_view"'));
  expect(stream.text()).toContain(requestId);
  stream.stop.abort();
  const { stdout } = await execa(
    process.execPath,
    ['gitops/cli.ts', 'logs', site, '--containers', '--where', `requestId=${requestId}`],
    { env: { TAGYARD_HOME: home.path } },
  );
  expect(stdout.split('\n')).toEqual([
    expect.stringMatching(
      new RegExp(`info .*processing/0 +GA4 client Request purchase POST /g/collect ${requestId}`),
    ),
  ]);
  const kept = stored();
  expect(kept).toContain(requestId);
  for (const text of PERSONAL) expect(kept).not.toContain(text);
});

test('a killed provisioner loses no line that was kept, and none is there twice after it is back', async () => {
  const before = await logs({ limit: 1_000 });
  const { url, secret } = instance.run.provisioner;
  const provisioner = readdirSync('/proc').find((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
      return environment.includes(`STATE_DIR=${join(home.path, 'provisioner')}\0`);
    } catch {
      return false;
    }
  });
  signal(Number(provisioner), 'SIGKILL', home.path);
  const requestId = await eventually(
    async () => {
      const health = await fetch(`${url}/readyz`, { headers: { 'x-secret': secret } });
      expect(health.status).toBe(200);
      return await hit('after_kill');
    },
    { timeoutMs: 60_000 },
  );
  await eventually(async () => expect(await logs({ requestId })).toHaveLength(1));
  const after = await logs({ limit: 1_000 });
  expect(after.slice(-before.length)).toEqual(before);
  expect(new Set(after.map((one) => one.id)).size).toBe(after.length);
}, 90_000);

test('what the policy script refuses is an event of the site, once', async () => {
  const { clientId } = instance.run.demo;
  const params = { path: { id: clientId } };
  await ok(call.management.PUT('/clients/{id}/policy', { params, body: { script: POLICY } } as never));
  const events = async () => {
    const { body } = await ok(call.management.GET('/server-containers/{id}/events', at(id)));
    return body.events.filter(({ kind }) => kind === 'policy').map(({ detail }) => detail);
  };
  await eventually(
    async () => {
      await hit('refused');
      expect(await events()).toHaveLength(1);
    },
    { timeoutMs: 60_000, intervalMs: 500 },
  );
  expect((await events())[0]).toMatch(/^the policy script refused set_cookies to GA4 client on \d{4}-/);
  await hit('refused');
  await eventually(async () => expect((await logs({ kind: 'refusal' })).length).toBeGreaterThan(1));
  expect(await logs({ kind: 'refusal', limit: 1 })).toMatchObject([
    { permission: 'set_cookies', name: 'GA4 client', level: 'error', stream: 'stderr' },
  ]);
}, 90_000);

test('a deletion of traffic also deletes the lines, and so does a removal of the site', async () => {
  expect(await logs()).not.toEqual([]);
  await ok(call.management.DELETE('/server-containers/{id}/traffic', at(id) as never));
  await eventually(async () => {
    const { body } = await ok(call.management.GET('/server-containers/{id}/traffic/deletions', at(id)));
    expect(body.deletions).toMatchObject([{ logsDeletedAt: expect.stringMatching(/^\d{4}-/) }]);
  });
  expect(await logs()).toEqual([]);
  const requestId = await hit('later');
  await eventually(async () => expect(await logs({ requestId })).toHaveLength(1));
  expect(stored()).toContain(requestId);
  await ok(call.management.DELETE('/server-containers/{id}', at(id) as never));
  const sites = () => readdirSync(join(home.path, 'provisioner', 'container-logs'));
  await eventually(() => expect(sites()).not.toContain(site), { timeoutMs: 60_000 });
  expect(stored()).not.toContain(requestId);
}, 90_000);
