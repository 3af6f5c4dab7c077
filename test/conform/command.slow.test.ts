import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { buildVendor } from '../../sites/local/demo/vendor/app.ts';
import { EMULATOR_TOKEN, startEmulator, type TestEmulator } from '../support/cloudflare/emulator.ts';
import { type FaultyCloudflare, startFaultyCloudflare } from '../support/cloudflare/faulty.ts';
import { testWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { signal } from '../support/signal.ts';
import { buildGateway } from '../support/tag-gateway.ts';
import { cloudflareBehaviours } from './cloudflare/behaviours.ts';
import { untriedQuotas } from './cloudflare/quotas.ts';
import { googleBehaviours } from './google/behaviours.ts';
import { runConform, startConform } from './run-conform.ts';

/** The rows of `--cloudflare` that no run tries. */
const QUOTAS = untriedQuotas.map(({ name }) => name);
const CLOUDFLARE = [...cloudflareBehaviours, ...untriedQuotas];
const DOCUMENT = readFileSync(new URL('../../docs/conformance.md', import.meta.url), 'utf8');

describe('npm run conform', () => {
  test('without arguments says what to name, and tries nothing', async () => {
    const { exitCode, stdout, stderr } = await startConform([]);
    expect([exitCode, stdout]).toEqual([2, '']);
    expect(stderr).toContain('name what to try: --image, --cloudflare, --google');
    expect(stderr).toContain('docs/conformance.md');
  });

  test.each([
    ['--help', 0],
    ['--nonsense', 2],
    ['extra', 2],
  ])('with %s has exit code %s', async (argument, code) => {
    expect((await startConform([argument])).exitCode).toBe(code);
  });

  test('says in its help which exit codes can occur, and that no run of --cloudflare has code 0', async () => {
    const { stdout } = await startConform(['--help']);
    expect(stdout).toContain('0: all same; never with --cloudflare');
    // As documented, and in the same order.
    const documented = [...DOCUMENT.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => code);
    expect(documented).toContain('3');
    expect([...stdout.matchAll(/(?:Exit code |^|\. )(\d+): /gm)].map(([, code]) => code)).toEqual(documented);
  });

  test.each([
    ['--cloudflare', 'CLOUDFLARE_API_TOKEN', CLOUDFLARE],
    ['--google=http://127.0.0.1:1', '127.0.0.1:1', googleBehaviours],
    ['--google=nowhere', 'nowhere is not an address', googleBehaviours],
  ])('tries nothing with %s alone, and says why in each row', async (argument, reason, behaviours) => {
    const { exitCode, rows, having } = await runConform([argument]);
    expect(exitCode).toBe(3);
    expect(having('not tried')).toEqual(behaviours.map(({ name }) => name));
    for (const { detail } of rows) expect(detail).toContain(reason);
  });

  testWith('network', 'tries nothing without a network', async () => {
    const settings = { CLOUDFLARE_API_TOKEN: 'a-real-token', CLOUDFLARE_ZONE_ID: '0'.repeat(32) };
    const alone = ['unshare', '--net', '--map-root-user'];
    const { exitCode, rows, having, output } = await runConform(
      ['--cloudflare', '--google'],
      settings,
      alone,
    );
    expect(exitCode).toBe(3);
    expect(having('not tried')).toHaveLength(CLOUDFLARE.length + googleBehaviours.length);
    for (const { detail } of rows) {
      expect(detail).toMatch(/(?:api\.cloudflare\.com|www\.googletagmanager\.com) can't be reached \(E/);
    }
    expect(output).not.toContain('a-real-token');
  });
});

describe('npm run conform -- --cloudflare', () => {
  let cloudflare: TestEmulator;
  let front: FaultyCloudflare;
  let settings: { CLOUDFLARE_API_TOKEN: string; CLOUDFLARE_ZONE_ID: string };
  beforeEach(async () => {
    cloudflare = await startEmulator();
    front = await startFaultyCloudflare(cloudflare.url);
    settings = { CLOUDFLARE_API_TOKEN: EMULATOR_TOKEN, CLOUDFLARE_ZONE_ID: cloudflare.zone.id };
    // What the zone had before.
    const path = `/zones/${cloudflare.zone.id}`;
    await cloudflare.call('POST', `${path}/dns_records`, { type: 'A', name: 'shop', content: '192.0.2.1' });
  });
  afterEach(async () => {
    await front.close();
    await cloudflare.close();
  });

  /** All that the emulator's account has. */
  async function everything() {
    const [zone, account] = [`/zones/${cloudflare.zone.id}`, `/accounts/${cloudflare.account}`];
    const lists = [
      `${zone}/dns_records`,
      `${zone}/workers/routes`,
      `${account}/storage/kv/namespaces?per_page=100`,
    ];
    return await Promise.all(lists.map(async (path) => (await cloudflare.call('GET', path)).json.result));
  }

  test('finds that nothing differs, names the limits that it does not try, and removes all that it made', async () => {
    const before = await everything();
    const made = front.calls.length;
    const { exitCode, tables, rows, having } = await runConform(['--cloudflare', front.url], settings);
    expect(having('differs')).toEqual([]);
    expect([exitCode, having('same')]).toEqual([3, cloudflareBehaviours.map(({ name }) => name)]);
    const untried = rows.filter(({ outcome }) => outcome === 'not tried');
    expect(untried.map(({ name, detail }) => [name, detail.split(';')[0]])).toEqual([
      [
        'refuses every call for five minutes after 1,200 calls in five minutes',
        'trying this would use up the calls of the token’s user for five minutes',
      ],
      ['refuses the 1,001st route of a zone', 'trying this would fill the zone'],
      ['refuses the 101st custom domain of a zone', 'trying this would fill the zone'],
      ['refuses the 201st DNS record of a zone', 'trying this would fill the zone'],
    ]);
    const calls = front.calls.length - made;
    expect(tables[0]?.costs[0]).toBe(`${calls} calls`);
    // What the document says, rounded.
    expect(DOCUMENT).toContain(`about ${Math.round(calls / 10) * 10} calls`);
    expect(tables[0]?.remains).toEqual([]);
    expect(await everything()).toEqual(before);
  });

  test('finds what differs, removes all that it made, and prints no token', async () => {
    const before = await everything();
    front.plan(
      {
        kind: 'change',
        change: (body: { success: boolean }) => ({ ...body, success: true, said: EMULATOR_TOKEN }),
      },
      (method, path) => method === 'POST' && path.endsWith('/dns_records'),
      Number.POSITIVE_INFINITY,
    );
    const { exitCode, having, rows, output } = await runConform(['--cloudflare', front.url], settings);
    expect(exitCode).toBe(1);
    expect(having('differs')).toContain('refuses an identical DNS record');
    expect(rows.find(({ outcome }) => outcome === 'differs')?.detail).not.toBe('');
    expect(output).not.toContain(EMULATOR_TOKEN);
    expect(await everything()).toEqual(before);
  });

  test('tries nothing with a token that is refused, and doesn’t print it', async () => {
    const wrong = { ...settings, CLOUDFLARE_API_TOKEN: 'wr0ng-token' };
    front.plan({
      kind: 'refuse',
      status: 403,
      body: '{"success":false,"errors":[{"code":9109,"message":"wr0ng-token is not allowed"}]}',
    });
    const { exitCode, rows, output } = await runConform(['--cloudflare', front.url], wrong);
    expect(exitCode).toBe(3);
    for (const { detail } of rows) expect(detail).toContain('status 403, [secret] is not allowed (9109)');
    expect(output).not.toContain('wr0ng-token');
  });

  test('reports a row as not tried if a call of it got no answer', async () => {
    front.plan({ kind: 'drop' }, (method) => method === 'POST');
    const { exitCode, rows } = await runConform(['--cloudflare', front.url], settings);
    expect(exitCode).toBe(3);
    expect(rows.filter(({ name, outcome }) => outcome !== 'same' && !QUOTAS.includes(name))).toEqual([
      expect.objectContaining({ outcome: 'not tried', detail: expect.stringContaining("can't be reached") }),
    ]);
  });

  test.each(['SIGINT', 'SIGTERM'] as const)(
    'removes what it made if %s ends it, including what is created after the signal',
    async (name) => {
      const before = await everything();
      const { promise, resolve } = Promise.withResolvers<void>();
      front.plan({ kind: 'hold', until: promise }, (method) => method === 'POST');
      const run = startConform(['--cloudflare', front.url], settings);
      await eventually(() => expect(front.faulted).toHaveLength(1));
      let said = '';
      run.stderr.on('data', (chunk: Buffer) => {
        said += chunk;
      });
      signal(run.pid ?? 0, name);
      await eventually(() => expect(said).toContain('removing what this run made'));
      resolve();
      const { exitCode, stdout } = await run;
      expect(exitCode).toBe(3);
      expect(stdout).toContain('the run was interrupted');
      expect(stdout).toMatch(/removed at the end: 1/);
      expect(await everything()).toEqual(before);
    },
  );
});

describe('npm run conform -- --google', () => {
  /** Both stand-ins; each answer also gets the headers in `spoil`. */
  async function startGoogle(spoil: Readonly<Record<string, string>> = {}) {
    const apps = [buildVendor(), buildGateway({ id: 'GTM-CONFORM' })];
    const [scripts = '', gateway = ''] = await Promise.all(
      apps.map((app) => {
        app.addHook('onSend', async (_request, reply) => void reply.headers(spoil));
        return app.listen({ host: '127.0.0.1', port: 0 });
      }),
    );
    return {
      args: ['--google', scripts, '--gateway', gateway],
      async [Symbol.asyncDispose]() {
        await Promise.all(apps.map((app) => app.close()));
      },
    };
  }

  test('finds that nothing differs', async () => {
    await using google = await startGoogle();
    const { exitCode, having } = await runConform(google.args);
    expect(having('differs')).toEqual([]);
    expect([exitCode, having('same')]).toEqual([0, googleBehaviours.map(({ name }) => name)]);
  });

  test('finds what differs', async () => {
    await using google = await startGoogle({ 'cache-control': 'public' });
    const { exitCode, rows, having } = await runConform(google.args);
    expect(exitCode).toBe(1);
    expect(having('differs')[0]).toMatch(/^gtm\.js/);
    expect(rows.find(({ outcome }) => outcome === 'differs')?.detail).toContain("'public'");
  });

  test('does not try the gateway where only the scripts have an address', async () => {
    await using google = await startGoogle();
    const { exitCode, rows, having } = await runConform(google.args.slice(0, 2));
    expect([exitCode, having('differs')]).toEqual([3, []]);
    expect(having('same').length).toBeGreaterThan(0);
    const untried = rows.filter(({ outcome }) => outcome === 'not tried');
    expect(untried.map(({ detail }) => detail)).toEqual(
      untried.map(() => 'name a tag gateway: --gateway <address>'),
    );
  });
});
