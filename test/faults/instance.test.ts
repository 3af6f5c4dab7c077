import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runningMaster } from '../../gitops/appliers/proxy/nginx/process.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { type Instance, startInstance, temporaryHome } from '../support/instance.ts';
import { api, at, ok } from '../support/management/api.ts';
import { signal } from '../support/signal.ts';
import { traces } from '../support/traces.ts';

/** The drivers that every machine has. Failures of nginx and Docker are tested in suites of their own. */
const EMBEDDED = { TAGYARD_PROXY: 'embedded', TAGYARD_CONTAINERS: 'process' };
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FREE = { MANAGEMENT_PORT: '0', PROVISIONER_PORT: '0', EDGE_PORT: '0', PROXY_PORT: '0' };

/** The site answers from the edge once the edge has read its stores, which takes a moment after `active`. */
async function isServed(call: ReturnType<typeof api>, hostname: string): Promise<void> {
  await eventually(async () =>
    expect((await call.edge(hostname, 'GET', '/healthy')).status, hostname).toBe(200),
  );
}

/** Runs the command until it exits; for starts that must fail. */
async function start(env: NodeJS.ProcessEnv): Promise<{ code: number | null; stderr: string }> {
  const child = spawn(process.execPath, ['gitops/cli.ts', 'up'], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...FREE, ...EMBEDDED, ...env },
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const [code] = await once(child, 'exit');
  return { code: typeof code === 'number' ? code : null, stderr };
}

/** The processes of this instance: only they have its home in their environment. */
function processesOf(home: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`TAGYARD_HOME=${home}\0`);
    } catch {
      return false;
    }
  });
}

describe('an instance that is killed with SIGKILL', () => {
  const home = temporaryHome();
  let instance: Instance;
  const kill = async () => {
    signal(instance.run.pid, 'SIGKILL');
    await eventually(() => expect(processesOf(home.path)).toEqual([]), { timeoutMs: 30_000 });
  };
  const restart = async () => {
    instance = await startInstance(home.path, EMBEDDED);
    return api(instance.run);
  };
  const create = (call: ReturnType<typeof api>, name: string) =>
    ok(
      call.management.POST('/server-containers', {
        body: {
          clientId: instance.run.demo.clientId,
          name,
          domains: [`${name}.example`],
          webTagIds: { [`${name}.example`]: 'GTM-FAULT12' },
          containerConfigB64: Buffer.from('id=GTM-FAULTSRV&env=1&auth=fault').toString('base64'),
        },
      }),
    );

  beforeAll(async () => {
    instance = await startInstance(home.path, EMBEDDED);
  });
  afterAll(async () => {
    await instance?.stop();
    home[Symbol.dispose]();
  });

  test('ends all its processes, and the next start continues with its data', async () => {
    const before = await ok(
      api(instance.run).management.GET('/server-containers/{id}', at(instance.run.demo.container)),
    );
    await kill();
    const call = await restart();
    const after = await call.reaches(instance.run.demo.container, 'active');
    expect(after.revision).toBe(before.body.revision);
    await isServed(call, after.hostnames.edge);
  });

  test('comes back on the same addresses when all its processes were killed at once', async () => {
    const { edge, management } = instance.run;
    for (const pid of processesOf(home.path)) {
      try {
        signal(Number(pid), 'SIGKILL', home.path);
      } catch (error) {
        // It may have ended with a process that was killed before it.
        if (processesOf(home.path).includes(pid)) throw error;
      }
    }
    const call = await restart();
    expect({ edge: instance.run.edge, management: instance.run.management }).toEqual({ edge, management });
    const demo = await call.reaches(instance.run.demo.container, 'active');
    await isServed(call, demo.hostnames.edge);
  });

  test('finishes a creation that it was in the middle of', async () => {
    const answer = await create(api(instance.run), 'half-made');
    expect(answer.status).toBe(202);
    await kill();
    const call = await restart();
    const made = await call.reaches(answer.body.id, 'active');
    await isServed(call, made.hostnames.edge);
  });

  test('finishes a removal that it was in the middle of, and nothing of the site remains', async () => {
    const { body: site } = await create(api(instance.run), 'half-gone');
    await api(instance.run).reaches(site.id, 'active');
    expect(
      await ok(api(instance.run).management.DELETE('/server-containers/{id}', at(site.id))),
    ).toMatchObject({
      status: 202,
    });
    await kill();
    const call = await restart();
    await call.reaches(site.id, 'removed');
    expect(await traces(home.path, site.siteId)).toEqual({
      dns: [],
      routes: [],
      kv: [],
      proxy: [],
      containers: [],
    });
  });

  test('refuses a second start on the same home, and says which process holds it', async () => {
    const { code, stderr } = await start({ TAGYARD_HOME: home.path });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        new RegExp(`^tagyard: an instance already runs on .*process ${instance.run.pid}.*\n$`),
      ),
    });
    expect((await fetch(`${instance.run.management.url}/healthz`)).status).toBe(200);
  });

  test('ends with all its processes after SIGTERM once it runs again', async () => {
    await instance.stop();
    expect(processesOf(home.path)).toEqual([]);
  });
});

describeWith('nginx', 'an instance with nginx', () => {
  test('keeps nginx when its provisioner is killed, and ends nginx when it stops', async () => {
    using home = temporaryHome();
    const prefix = join(home.path, 'provisioner', 'proxy');
    const instance = await startInstance(home.path, { ...EMBEDDED, TAGYARD_PROXY: 'nginx' });
    try {
      const nginx = await runningMaster(prefix);
      expect(nginx).not.toBeNull();
      const provisioner = () => {
        const children: { pid: number; script: string }[] = JSON.parse(
          readFileSync(join(home.path, 'children.json'), 'utf8'),
        );
        return children.find(({ script }) => script.endsWith('gitops/main.ts'))?.pid ?? 0;
      };
      const before = provisioner();
      signal(before, 'SIGKILL');
      await eventually(() => expect(provisioner()).not.toBe(before), { timeoutMs: 30_000 });
      const { url, secret } = instance.run.provisioner;
      await eventually(
        async () => expect((await fetch(`${url}/readyz`, { headers: { 'x-secret': secret } })).ok).toBe(true),
        { timeoutMs: 60_000 },
      );
      expect(await runningMaster(prefix)).toBe(nginx);
    } finally {
      await instance.stop();
    }
    expect(await runningMaster(prefix)).toBeNull();
  });
});

describe('a start that is stopped', () => {
  test.each([1, 2, 3])(
    'with %i of its processes running ends them, and no lock and no run.json remain',
    async (count) => {
      using home = temporaryHome();
      const env = { ...process.env, ...FREE, ...EMBEDDED, TAGYARD_HOME: home.path };
      const child = spawn(process.execPath, ['gitops/cli.ts', 'up'], { cwd: ROOT, stdio: 'ignore', env });
      const exit = once(child, 'exit');
      // The command itself is one of these processes.
      await eventually(() => expect(processesOf(home.path).length).toBeGreaterThan(count), { intervalMs: 5 });
      child.kill('SIGTERM');
      expect(await exit).toEqual([0, null]);
      expect(processesOf(home.path)).toEqual([]);
      expect(existsSync(join(home.path, 'run.json'))).toBe(false);
      expect(existsSync(join(home.path, 'lock.pid'))).toBe(false);
    },
  );
});

test.each([
  ['', /DEFAULT_CONSENT=opt_out +new sites identify visitors unless they refuse/],
  ['required', /DEFAULT_CONSENT=required +new sites identify visitors only after a grant/],
])('a start with DEFAULT_CONSENT=%s says whom new sites identify', async (mode, expected) => {
  using home = temporaryHome();
  const env = { ...process.env, ...FREE, ...EMBEDDED, TAGYARD_HOME: home.path, DEFAULT_CONSENT: mode };
  const child = spawn(process.execPath, ['gitops/cli.ts', 'up'], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const exit = once(child, 'exit');
  let stdout = '';
  for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    stdout = stripVTControlCharacters(stdout + text);
    if (/^consent .*\n/m.test(stdout)) break;
  }
  child.stdout.resume();
  child.kill('SIGTERM');
  await exit;
  expect(stdout).toMatch(expected);
});

describe('a start that can’t succeed says so in one line', () => {
  const oneLine = (pattern: RegExp) => ({
    code: 1,
    stderr: expect.stringMatching(new RegExp(`^tagyard: [^\n]*${pattern.source}[^\n]*\n$`)),
  });

  test('where a port is taken', async () => {
    using home = temporaryHome();
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    expect(await start({ TAGYARD_HOME: home.path, MANAGEMENT_PORT: String(port) })).toEqual(
      oneLine(/MANAGEMENT_PORT.*in use/),
    );
    server.close();
  });

  test.each<[string, (home: string) => string, RegExp]>([
    ['the home is a file', (home) => write(join(home, 'home'), 'a file'), /can't be used/],
    ['the home is where nothing can be made', () => '/proc/nowhere/home', /can't be used/],
    [
      'the lock is not one of ours',
      (home) => dirname(write(join(home, 'lock'), 'x'.repeat(200))),
      /lock can't be locked/,
    ],
    [
      'the instance’s own file is damaged',
      (home) => dirname(write(join(home, 'instance.json'), '{')),
      /damaged/,
    ],
  ])('where %s', async (_what, breakHome, pattern) => {
    using home = temporaryHome();
    expect(await start({ TAGYARD_HOME: breakHome(home.path) })).toEqual(oneLine(pattern));
  });

  test('where a port is not a number', async () => {
    using home = temporaryHome();
    expect(await start({ TAGYARD_HOME: home.path, EDGE_PORT: 'edge' })).toEqual(
      oneLine(/EDGE_PORT=edge is not a port/),
    );
  });
});

function write(path: string, text: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}
