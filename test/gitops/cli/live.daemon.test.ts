import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { tagyardOf } from '../../support/cli/command.ts';
import { tagyardHere } from '../../support/cli/in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { idleApplier } from '../../support/gitops/plans.ts';
import { silentServer } from '../../support/silent.ts';

let daemon: MemoryDaemon;
let url: string;
async function open(...given: Parameters<typeof memoryDaemon>): Promise<void> {
  daemon = await memoryDaemon(...given);
  url = await daemon.app.listen({ host: '127.0.0.1', port: 0 });
}
beforeEach(() => {
  answer = [503, {}];
  return open();
});
afterEach(() => daemon.close());

let silent: Awaited<ReturnType<typeof silentServer>>;
let ill: Server;
let illUrl: string;
let answer: [status: number, body: object];
beforeAll(async () => {
  silent = await silentServer();
  ill = createServer((_request, response) => {
    const [status, body] = answer;
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((done) => ill.listen({ port: 0, host: '127.0.0.1' }, done));
  illUrl = `http://127.0.0.1:${(ill.address() as AddressInfo).port}`; // it listens on TCP
});
afterAll(async () => {
  await silent.close();
  await new Promise((done) => ill.close(done));
});

const IMPATIENT = { TAGYARD_TIMEOUT: '1' };
const tagyard = (args: readonly string[], env: Record<string, string> = {}) => tagyardHere(url, args, env);
const applied = async (...names: string[]) => {
  for (const [number, name] of names.entries()) await daemon.push(name, daemon.manifest(name, number));
  for (const name of names) await daemon.reaches(name, 'Ready');
};
/** Changes an object in its target but keeps its mark, as a person in the provider's dashboard would. */
function hijack(target: string, key: string): void {
  const { mark } = daemon.world(target).get(key) ?? { mark: null };
  daemon.world(target).set(key, { mark, hash: 'changed' });
}

describe('what was changed from outside', () => {
  test.each([
    ['changed', () => hijack('dns', 'one.example.net'), 'changed or broken'],
    ['deleted', () => void daemon.world('dns').delete('one.example.net'), 'missing'],
  ])('is shown with what it was and is, before any pass has seen it: %s', async (_how, disturb, is) => {
    await applied('one', 'two');
    disturb();
    const line = `dns one.example.net: was dns of one.example.net, is ${is}`;
    const doctor = await tagyard(['doctor']);
    expect(doctor).toMatchObject({ exitCode: 1, stdout: expect.stringContaining(line) });
    expect(doctor.stdout).toContain('1 of 2 sites is well');
    const status = await tagyard(['status']);
    expect(status).toMatchObject({ exitCode: 1, stdout: expect.stringContaining(`drift one: ${line}`) });
    const one = await tagyard(['status', 'one', '--json']);
    expect(JSON.parse(one.stdout)).toMatchObject({
      drift: [{ site: 'one', target: 'dns', drift: true }],
      resources: expect.arrayContaining([expect.objectContaining({ target: 'dns', state: 'drifted' })]),
    });
    const other = await tagyard(['status', 'two']);
    expect(other).toMatchObject({ exitCode: 0, stdout: expect.not.stringContaining('drift') });
    expect((await tagyard(['plan'])).stdout).toContain(`was dns of one.example.net, is ${is}`);
  });
});

describe('a site whose serving is stopped', () => {
  test('serves again when it is resumed; the serving of a suspended site can’t be stopped', async () => {
    await applied('one', 'two');
    const read = async () => (await daemon.call('GET', '/sites/one')).body;
    const stopped = await tagyard(['suspend', 'one', '--stop-serving', '--reason', 'unpaid']);
    expect(stopped).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('is commit') });
    await eventually(async () => {
      expect(await read()).toMatchObject({ reason: 'Ready', servingOff: true });
      expect((await read()).suspended).toBeUndefined();
    });
    expect((await tagyard(['history', 'one'])).stdout).toMatch(/Switch off the serving of one/);
    expect((await tagyard(['suspend', 'one', '--stop-serving'])).stdout).toContain('already in that state');
    expect((await tagyard(['resume', 'one'])).exitCode).toBe(0);
    await eventually(async () => expect((await read()).servingOff).toBeUndefined());

    await tagyard(['suspend', 'one']);
    const refused = await tagyard(['suspend', 'one', '--stop-serving']);
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('resume it first') });
    await daemon.call('POST', '/sites/one/resume?wait=20');
  });
});

describe('a suspended site', () => {
  test('is shown as suspended by status and doctor, with what waits', async () => {
    await applied('one', 'two');
    await daemon.call('POST', '/sites/one/suspend?wait=20');
    expect((await tagyard(['status'])).stdout).toMatch(/^one +paused +Ready/m);
    expect((await tagyard(['status'])).stdout).toMatch(/^two +serving +Ready {2}/m);
    const quiet = await tagyard(['doctor']);
    expect(quiet).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('one: Suspended') });
    expect(quiet.stdout).toContain('1 of 2 sites is well');

    const manifest = daemon.manifest('one', 0, { suspend: true, name: 'Renamed' });
    const { revision } = await daemon.push('one', manifest);
    await daemon.hasRead(revision);
    await daemon.reaches('one', 'Suspended');
    expect((await tagyard(['status'])).stdout).toMatch(
      /^one +paused +Suspended .*changes? (?:is|are) pending/m,
    );
    const plan = await tagyard(['plan']);
    expect(plan).toMatchObject({ exitCode: 2, stdout: expect.stringContaining('held: suspended') });
    expect(plan.stdout).toContain('one is suspended');
    expect(plan.stdout).toContain('(0 would be applied now');
    await daemon.call('POST', '/sites/one/resume?wait=20');
    expect((await tagyard(['doctor'])).exitCode).toBe(0);
    expect((await tagyard(['status'])).stdout).not.toContain('suspended');
  });
});

describe('a site whose serving is off', () => {
  test('is shown as such by status and doctor until it is resumed', async () => {
    await applied('one', 'two');
    const { revision } = await daemon.push('one', daemon.manifest('one', 0, { serving: false }));
    await daemon.hasRead(revision);
    await eventually(async () => expect((await tagyard(['status'])).stdout).toMatch(/^one +off +Ready/m));
    const found = await tagyard(['doctor']);
    expect(found).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('one: ServingOff') });
    await daemon.call('POST', '/sites/one/resume?wait=20');
    expect((await tagyard(['status'])).stdout).not.toContain('serving off');
    expect((await tagyard(['doctor'])).exitCode).toBe(0);
  });
});

describe('tagyard plan', () => {
  test('announces no deletion for a site whose manifest can’t be used', async () => {
    await applied('one', 'two');
    await daemon.push('one', 'version: 1\nsite: one\nwhat: ever\n');
    await daemon.reaches('one', 'InvalidManifest');
    const plan = await tagyard(['plan']);
    expect(plan.stdout).not.toContain('delete');
    expect(plan.stdout).toContain('InvalidManifest');
    expect(plan).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('no change, because') });
    expect(daemon.objectCount('one')).toBeGreaterThan(0);
  });

  test('announces no deletion for a site whose names belong to another site', async () => {
    await applied('one', 'two');
    await daemon.push('two', daemon.manifest('two', 1, { hostnames: daemon.manifest('one', 0).hostnames }));
    await daemon.reaches('two', 'NameTaken');
    const plan = await tagyard(['plan']);
    expect(plan.stdout).not.toContain('delete');
    expect(plan.stdout).toContain('NameTaken');
  });
});

describe('tagyard approve', () => {
  const checksum = async () => JSON.parse((await tagyard(['plan', '--json'])).stdout).checksum as string;

  test('says so if nothing waits for an approval', async () => {
    await applied('one');
    expect(await tagyard(['approve', await checksum()])).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringContaining('nothing was approved'),
    });
  });

  test('says what still holds the changes', async () => {
    await applied('one');
    await daemon.close();
    await open({ policy: 'upsert_only' });
    await applied('one');
    await daemon.push('one', null);
    await daemon.reaches('one', 'Blocked');
    expect(await tagyard(['approve', await checksum()])).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringMatching(/changes? (?:is|are) approved, but[\s\S]*upsert_only: /),
    });
    expect(daemon.objectCount('one')).toBeGreaterThan(0);
  });
});

describe('tagyard doctor', () => {
  test.each([
    ['management', 'MANAGEMENT_URL'],
    ['verification', 'VERIFICATION_WORKER_URL'],
  ])('names %s if it is silent, can’t be reached or answers with errors', async (name, variable) => {
    await applied('one');
    for (const [address, words] of [
      [silent.url, 'did not answer'],
      ['http://127.0.0.1:1', "can't be reached"],
      [illUrl, 'status 503'],
      ['nonsense', 'is not a URL'],
    ] as const) {
      const { exitCode, stdout } = await tagyard(['doctor'], { ...IMPATIENT, [variable]: address });
      expect(exitCode).toBe(1);
      expect(stdout).toMatch(new RegExp(`^failed +${name} .*${words}`, 'm'));
      expect(stdout).not.toContain('are well');
    }
    // The provisioner's address instead: it answers, but not as the service that doctor expects there.
    const { exitCode, stdout } = await tagyard(['doctor'], { [variable]: url });
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(new RegExp(`^failed +${name} .*${variable}`, 'm'));
    expect(stdout).not.toContain('are well');
  });

  test.each([
    [
      'management',
      'MANAGEMENT_URL',
      { service: 'management', status: 'not_ready', database: false, sitesRepo: true },
      503,
      'database',
    ],
    ['management', 'MANAGEMENT_URL', { service: 'management', status: 'ready' }, 200, null],
    ['verification', 'VERIFICATION_WORKER_URL', { service: 'verification', code: 'wrong_secret' }, 401, null],
    [
      'verification',
      'VERIFICATION_WORKER_URL',
      { service: 'verification', code: 'secret_not_configured' },
      403,
      'secret_not_configured',
    ],
    [
      'verification',
      'VERIFICATION_WORKER_URL',
      { service: 'verification', code: 'not_found' },
      404,
      'not_found',
    ],
  ])('judges %s by its answer, at %s: %o with status %i', async (name, variable, body, status, words) => {
    await applied('one');
    answer = [status, body];
    const { exitCode, stdout } = await tagyard(['doctor'], { [variable]: illUrl });
    expect(exitCode).toBe(words === null ? 0 : 1);
    expect(stdout).toMatch(
      words === null ? /1 site is well/ : new RegExp(`^failed +${name} .*${words}`, 'm'),
    );
  });

  test('names a wrong VERIFICATION_SECRET', async () => {
    await applied('one');
    answer = [401, { service: 'verification', code: 'wrong_secret' }];
    const env = { VERIFICATION_WORKER_URL: illUrl, VERIFICATION_SECRET: 'another' };
    const { exitCode, stdout } = await tagyard(['doctor'], env);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^failed +verification .*VERIFICATION_SECRET/m);
  });

  test('names the parts that it did not check', async () => {
    await applied('one');
    const { exitCode, stdout } = await tagyard(['doctor'], { TAGYARD_HOME: daemon.dir });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^1 of 1 site is well at [0-9a-f]+; not checked: management, verification$/m);
  });

  test('names a target that never answers', async () => {
    await daemon.close();
    let hangs = false;
    const dns = idleApplier('dns', {
      observe: () => (hangs ? new Promise(() => undefined) : Promise.resolve([])),
    });
    await open({}, [dns]);
    await applied('one');
    hangs = true;
    const { exitCode, stdout } = await tagyard(['doctor'], IMPATIENT);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^failed +targets +dns: no answer within 0.5 s$/m);
    expect(stdout).not.toContain('are well');
    const status = await tagyard(['status'], IMPATIENT);
    expect(status).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('no answer within 0.5 s') });
  });

  test('names a sites repository that is gone', async () => {
    await applied('one');
    const { rename } = await import('node:fs/promises');
    await rename(daemon.sitesRepo, `${daemon.sitesRepo}.away`);
    const { exitCode, stdout } = await tagyard(['doctor']);
    await rename(`${daemon.sitesRepo}.away`, daemon.sitesRepo);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^failed +sites_repo /m);
    expect(stdout).not.toContain('are well');
  });
});

describe('a provisioner that doesn’t answer', () => {
  const VERBS = [
    'plan',
    'status',
    'status one',
    'history one',
    'diff',
    'apply',
    'approve ffff',
    'revert one',
    'suspend one',
    'image sha256:00',
    'prune',
    'doctor',
    'doctor one',
  ];
  test.each(VERBS)('makes `%s` end with an error that names the provisioner', async (words) => {
    const { exitCode, stderr } = await tagyardHere(silent.url, words.split(' '), { TAGYARD_TIMEOUT: '0.2' });
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`the provisioner at ${silent.url} did not answer`);
  });

  test('doesn’t stop doctor from asking the other parts', async () => {
    const { exitCode, stdout, stderr } = await tagyardOf(silent.url)(['doctor'], {
      TAGYARD_TIMEOUT: '0.2',
      MANAGEMENT_URL: 'http://127.0.0.1:1',
    });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^tagyard: the provisioner at .* did not answer/);
    expect(stderr).not.toContain('    at ');
    expect(stdout).toMatch(/^failed +provisioner /m);
    expect(stdout).toMatch(/^failed +management /m);
    expect(stdout).not.toContain('are well');
  });
});
